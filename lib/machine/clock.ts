// The machine's clocks, and cores that stay awake while time is measured.
import { closeSync, openSync, writeSync } from 'node:fs';
import { ifThere } from '../files.ts';

/** In milliseconds. Tests have their own. */
export interface Clock {
  /** CLOCK_MONOTONIC, as the engine's `monotonicMs`: no step of the wall clock moves it, and it stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Since 1970: what samples in the database are stamped with. */
  wallMs(): number;
}

export const machineClock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/**
 * Keeps this machine's idle cores from sleeping until the returned function is called, or this process ends: waking one takes
 * microseconds, on a virtual machine milliseconds. A limit of 0 µs holds as long as the device is open (cpu_latency_qos). Without
 * the device, or the right to open it (root), all stays as it was.
 */
export function keepCoresAwake(device = '/dev/cpu_dma_latency'): () => void {
  const file = ifThere(() => openSync(device, 'r+'));
  if (file === undefined) return () => undefined;
  // Microseconds, as a 32-bit number.
  ifThere(() => writeSync(file, Buffer.alloc(4)));
  return () => closeSync(file);
}
