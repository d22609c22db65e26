// Idle cores that wait awake, while time is what is measured.
import { closeSync, openSync, writeSync } from 'node:fs';
import { ifThere } from '../read-if-there.ts';

/**
 * Keeps this machine's idle cores from sleeping until the function that it returns is called, or this process ends. What wakes a
 * sleeping core waits for that: on its own machine for microseconds, on a virtual one for milliseconds where the host has given the
 * core away meanwhile. It is the kernel's way (cpu_latency_qos, which cyclictest uses as well): a limit of 0 µs holds as long as the
 * device is open. Without it, or the right to open it (root), all stays as it was.
 */
export function keepCoresAwake(device = '/dev/cpu_dma_latency'): () => void {
  const file = ifThere(() => openSync(device, 'r+'));
  if (file === undefined) return () => undefined;
  // Microseconds, as a 32-bit number.
  ifThere(() => writeSync(file, Buffer.alloc(4)));
  return () => closeSync(file);
}
