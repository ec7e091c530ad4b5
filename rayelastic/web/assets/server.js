// What the page asks of its server. Addresses are relative, so that it works behind a path prefix.

const of = (job, rest) => `api/jobs/${encodeURIComponent(job)}/${rest}`;

async function asked(address, options) {
  const response = await fetch(address, { credentials: "same-origin", ...options });
  const said = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(said.error ?? `the server answered ${response.status}`);
  return said;
}

export const about = () => asked("api/about");
export const jobs = () => asked("api/jobs");
export const story = (job) => asked(of(job, "story"));
export const frame = (job, at) => asked(of(job, `frame?at=${at}`));
export const stream = (job, from) => new EventSource(of(job, `stream?from=${from}`));

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

// Rows of float32, one an operator; see rayelastic/web/frames.py for the columns.
export function table(said) {
  if (!said.operators) return null;
  const raw = atob(said.operators), data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
  return new Float32Array(data.buffer);
}
