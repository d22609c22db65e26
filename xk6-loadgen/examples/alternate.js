// Two servers in turns: TARGETS='http://127.0.0.1:8081/ http://127.0.0.1:8082/' k6 run alternate.js
import loadgen from 'k6/x/loadgen';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const [a, b] = loadgen.alternate({
    sides: __ENV.TARGETS.split(' ').map((url, index) => ({
      url,
      connections: 50,
      warmup: '500ms',
      duration: __ENV.DURATION ?? '10s',
      tags: { side: `${index + 1}` },
    })),
  });
  console.log(`the second makes ${(b.rps / a.rps).toFixed(3)} times the first one's requests/s`);
}
