// Whether the kernel's buffers suffice for HTTP/3.
import { readFileSync } from 'node:fs';
import type { LoadProfile } from '../scenario/model.ts';

/** What quic-go asks for. The kernel doubles it. */
const wantedBytes = 7 * 1024 * 1024;
const limits = ['net.core.rmem_max', 'net.core.wmem_max'];

/** Returns a line if a load is HTTP/3 and a limit of UDP buffers is below what it wants. */
export function udpNotes(
  loads: readonly Pick<LoadProfile, 'protocol'>[],
  isRoot = process.getuid?.() === 0,
  limit = (name: string) => Number(readFileSync(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8')),
): string[] {
  const small = limits.filter((name) => 2 * limit(name) < wantedBytes);
  if (isRoot || small.length === 0 || !loads.some(({ protocol }) => protocol === 'h3')) return [];
  const settings = small.map((name) => `${name}=${wantedBytes}`).join(' ');
  return [`the buffers of UDP are small, so HTTP/3 may lose datagrams: sudo sysctl ${settings}`];
}
