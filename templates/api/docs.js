"use strict";
// Operations that change something carry the session's CSRF token; a bearer token needs none.
const addCsrf = (request) => {
  if (!["GET", undefined].includes(request.method)) request.headers["{{ csrf_header_name|escapejs }}"] = "{{ csrf_token|escapejs }}";
  return request;
};

SwaggerUIBundle({
  spec: {{ schema|safe }},
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  requestInterceptor: addCsrf,
});
