"""uuid7(): the server's own where it has one (PostgreSQL 18), else the same thing in SQL."""

from django.db import migrations

CREATE = """
DO $do$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'uuidv7' AND pronamespace = 'pg_catalog'::regnamespace) THEN
    CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $$ SELECT uuidv7() $$;
  ELSE
    -- RFC 9562: 48 bits of Unix milliseconds, version 7, variant 10, the rest at random.
    CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
      SELECT encode(
        set_bit(set_bit(
          overlay(uuid_send(gen_random_uuid())
                  PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                  FROM 1 FOR 6),
          52, 1), 53, 1), 'hex')::uuid
    $$;
  END IF;
END $do$;
"""


class Migration(migrations.Migration):
    dependencies = [("permissions", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, "DROP FUNCTION uuid7()")]
