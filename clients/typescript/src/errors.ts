/** The body of an error, `application/problem+json`. */
export interface ProblemBody {
  /** The class of the error, such as `IdConflict` or `InvalidArgument`. */
  title: string;
  detail: string;
  status: number;
  /** Whether the same request can succeed later. */
  retryable: boolean;
  /** What is wrong, such as the name of an argument. */
  path?: string;
  rule?: string;
  [name: string]: unknown;
}

/** The server has refused a request. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    readonly body: ProblemBody,
    /** The seconds of `Retry-After`. */
    readonly retryAfter?: number,
  ) {
    super(`${body.title}: ${body.detail}`);
  }

  /** The class of the error, such as `IdConflict`. */
  get title(): string {
    return this.body.title;
  }

  get status(): number {
    return this.body.status;
  }

  get retryable(): boolean {
    return this.body.retryable;
  }
}

/** The server could not be reached, or the connection broke. */
export class ConnectionFailed extends Error {
  override readonly name = "ConnectionFailed";
}

/** A stream has ended, and coming back cannot help. */
export class StreamEnded extends Error {
  override readonly name = "StreamEnded";

  constructor(readonly reason: string, readonly problem?: ProblemBody) {
    super(problem ? `${reason}: ${problem.detail}` : reason);
  }
}

/** The problem in a response; servers on the way answer in other forms. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfter = Number.isFinite(seconds) ? seconds : undefined;
  let body: Partial<ProblemBody> = {};
  try {
    body = JSON.parse(text) as Partial<ProblemBody>;
  } catch {
    // Not JSON: the text is the detail.
  }
  const retryable = body.retryable ?? [429, 502, 503, 504].includes(response.status);
  const title = body.title ?? response.statusText;
  const whole = { ...body, title, detail: body.detail ?? text, status: response.status, retryable };
  return new Problem(whole, retryAfter);
}
