// The API's reference: the schema of this installation, in Swagger UI's clothes.
"use strict";

const place = document.getElementById("reference");
const csrfToken = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || [])[1];

window.SwaggerUIBundle({
    url: place.dataset.schema,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    // Its badge would ask another host.
    validatorUrl: null,
    requestInterceptor: (request) => {
        // A person who is signed in to the console proves with this that the request comes from here.
        const token = csrfToken();
        if (token) {
            request.headers["X-CSRFToken"] = token;
        }
        return request;
    },
});
