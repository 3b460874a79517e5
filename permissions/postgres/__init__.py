"""Django's PostgreSQL backend, each statement held to the tenant scope of the code that runs it."""
