import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({
  baseUrl: process.argv[2],
  headers: { "X-Org-Id": "acme", "X-User-Id": "u1" },
});
const pods = await client.GET("/v1/k8s/pods", { params: { query: { cluster: "contract", namespace: "team-a" } } });
if (pods.error) throw new Error(pods.error.code);
for (const pod of pods.data.pods ?? []) console.log(pod.name, pod.phase, pod.restarts);
const gone = await client.GET("/v1/k8s/pods", { params: { query: { cluster: "nobodys" } } });
console.log(gone.response.status, gone.error?.code);
