/** Requests to the REST API of the server that serves this page. */
import type { components } from "./api.gen";

type Schemas = components["schemas"];
/** A record of the API by its name; what has a default is always sent. */
export type Api<Name extends keyof Schemas> = Schemas[Name];

/** What a tool answers: a text for agents, and the same as a record. */
export type Outcome<Name extends keyof Schemas> = { text: string; data: Schemas[Name] };

export type Page<Item> = { items: Item[]; next: string | null };

export type Call = {
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: object;
};

/** A request that failed, with what to do about it. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint = "",
  ) {
    super(message);
  }
}

/** Return the address of a call. */
export function addressOf(call: Call): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return `/api/v1${call.path}${text ? `?${text}` : ""}`;
}

/** Send a call and return its answer; with a body it is a POST. */
export async function send<Result>(call: Call, signal?: AbortSignal): Promise<Result> {
  let response: Response;
  try {
    response = await fetch(addressOf(call), {
      method: call.body ? "POST" : "GET",
      headers: call.body ? { "content-type": "application/json" } : {},
      body: call.body ? JSON.stringify(call.body) : undefined,
      signal,
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure(
      0,
      "The server does not respond.",
      "Start it with 'lore up --detach'; this page then goes on by itself.",
    );
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer as Result;
  throw failureOf(response.status, answer);
}

function failureOf(status: number, answer: unknown): Failure {
  if (status === 401)
    return new Failure(401, "This browser is logged out.", "Run 'lore open' to log in again.");
  const problem = (answer ?? {}) as { detail?: string; title?: string; hint?: string };
  return new Failure(
    status,
    problem.detail ?? problem.title ?? `The server answered ${status}.`,
    problem.hint ?? "",
  );
}
