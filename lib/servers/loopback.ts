// Which hosts are this machine.
const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const v6 = '::1|(?:0{1,4}:){7}0{0,3}1';
const loopback = new RegExp(`^(?:localhost|127(?:\\.${octet}){3}|${v6}|\\[(?:${v6})\\])$`, 'i');

/**
 * Whether a host, as a URL or a config has it, is this machine only. Only what no resolver is asked about: 127.0.0.1 as it is
 * usually written, also where another notation (127.1, 0x7f000001, ::ffff:127.0.0.1, a dot at the end) or name (a.localhost) may
 * mean the same.
 */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}
