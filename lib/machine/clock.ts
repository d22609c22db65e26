// The machine's clocks, and cores that stay awake while time is measured.
import { closeSync, openSync, writeSync } from 'node:fs';
import { ifThere } from '../files.ts';

export interface Clock {
  /** CLOCK_MONOTONIC, as `monotonicMs` of the engine. It ignores steps of the wall clock, and stops while the machine is suspended. */
  monotonicMs(): number;
  /** Since 1970: the time of samples in the database. */
  wallMs(): number;
}

export const machineClock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/**
 * Keeps idle cores awake until the returned function is called, since waking a core takes microseconds, on a virtual machine
 * milliseconds. The latency limit of 0 µs (cpu_latency_qos) applies while the device is open. Does nothing without root.
 */
export function keepCoresAwake(device = '/dev/cpu_dma_latency'): () => void {
  const file = ifThere(() => openSync(device, 'r+'));
  if (file === undefined) return () => undefined;
  // The limit in microseconds, as a 32-bit number.
  ifThere(() => writeSync(file, Buffer.alloc(4)));
  return () => closeSync(file);
}
