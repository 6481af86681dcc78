// Shows the description of this very server with Swagger UI.

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

const answer = await fetch("api/openapi.json");
const spec = await answer.json();
// Requests go to the address that this page came from, whatever the public one is.
spec.servers = [{ url: new URL("api", document.baseURI).href, description: "This server" }];

const ui = globalThis.SwaggerUIBundle({
  spec,
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
  onComplete: () => {
    const key = sessionStorage.getItem("satchel.key"); // what the console was given
    if (key) ui.preauthorizeApiKey("bearerKey", key);
  },
});
