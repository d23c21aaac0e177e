// Asking the agent. An answer that is an error is thrown with its own words, which name the key, the value and the fix.

export async function get(path, parameters = {}, signal = undefined) {
  return answered(await fetch(address(path, parameters), { signal, headers: { accept: "application/json" } }));
}

export async function send(method, path, body = {}) {
  return answered(
    await fetch(path, { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  );
}

export function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, given] of Object.entries(parameters)) {
    const values = [given].flat().filter((value) => value !== null && value !== undefined && value !== "");
    for (const value of values) query.append(name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

export const ofRun = (run, what) => `/api/v1/runs/${encodeURIComponent(run)}/${what}`;

async function answered(response) {
  if (response.ok) return response.json();
  const told = await response.json().catch(() => ({}));
  throw new Error(told.error ?? `${response.status}: the agent does not answer that`);
}

// Words for whoever looks, but none of a question that was dropped for a newer one.
export const wordsOf = (error) =>
  error.name === "AbortError" ? "" : error instanceof TypeError ? "The agent does not answer." : error.message;
