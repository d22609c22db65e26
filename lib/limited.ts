/**
 * A signal that aborts as the given one does, or with a TimeoutError after so many milliseconds, for work that keeps Node running by
 * itself. AbortSignal.timeout within AbortSignal.any may be collected in Node 20, and then never comes.
 */
export function limited(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  const timeOut = new DOMException('it took too long', 'TimeoutError');
  setTimeout(() => late.abort(timeOut), ms).unref();
  return AbortSignal.any([signal, late.signal]);
}
