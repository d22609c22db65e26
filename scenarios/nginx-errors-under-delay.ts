import { defineScenario, nginx } from '../lib/scenario/index.ts';
import {
  article,
  footnotes,
  loadWith,
  network,
  page,
  workers,
} from './nginx-tuning-under-delay.ts';

export default defineScenario({
  name: 'nginx-errors-under-delay',
  title: "the errors behind 100 ms by kind, as ab's side sees them and in nginx's log",
  article,
  knob: 'tcp_nopush',
  // Longer than the 60 s after which nginx gives up on a request.
  load: loadWith(10_000, 75, 1400),
  page,
  network,
  rounds: 1,
  variants: [
    {
      name: 'tcp-nopush',
      server: nginx(['packaged', 'tcp-nopush', 'error-log-info'], workers),
      published: {
        clientErrors: [
          'recv() failed (104: Connection reset by peer) while sending response to client',
          'client timed out (110: Connection timed out) while waiting for request',
        ],
      },
    },
  ],
  footnotes: ['The article shows a line of each of the two kinds, and no counts.', ...footnotes],
});
