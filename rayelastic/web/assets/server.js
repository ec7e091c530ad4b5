// Requests to the server of the web UI. Addresses are relative, so that they work behind a path prefix.

const of = (job, rest) => `api/jobs/${encodeURIComponent(job)}/${rest}`;

// The server is unreachable: its process has ended, or the network is down.
export class Gone extends Error {}

async function asked(address, options) {
  const response = await fetch(address, { credentials: "same-origin", ...options }).catch((error) => { throw new Gone(error.message); });
  const report = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(report.error ?? `the server answered ${response.status}`);
  return report;
}

export const about = () => asked("api/about");
export const jobs = () => asked("api/jobs");
export const story = (job) => asked(of(job, "story"));
export const frame = (job, at) => asked(of(job, at === null ? "frame" : `frame?at=${at}`));
export const operator = (job, name) => asked(of(job, `operator?${new URLSearchParams({ name })}`));
export const events = (job, from) => asked(of(job, `events?from=${from}`));
export const series = (job, behind) => asked(of(job, `series?behind=${behind}`));
export const stream = (job) => new EventSource(of(job, "stream"));

export function graph(job, detail, opened, at) {
  const query = new URLSearchParams({ detail });
  for (const name of opened) query.append("open", name);
  if (at !== null) query.set("at", at);
  return asked(of(job, `graph?${query}`));
}

export const act = (job, wanted) =>
  asked(of(job, "actions"), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Rayelastic": "page" },
    body: JSON.stringify(wanted),
  });

function binary(base64) {
  const raw = atob(base64), data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
  return data.buffer;
}

// Decode tables: rows of float32, one an operator (columns: rayelastic/web/frames.py), and row numbers.
export const floats = (base64) => new Float32Array(binary(base64));
export const numbers = (base64) => new Uint32Array(binary(base64));
