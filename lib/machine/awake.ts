// Idle cores that wait awake, while time is what is measured.
import { closeSync, openSync, writeSync } from 'node:fs';
import { ifThere } from '../read-if-there.ts';

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
