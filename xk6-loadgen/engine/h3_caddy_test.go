package engine

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A server that nobody wrote for these tests: what its access log says is what the engine counts, exactly.
func TestH3AgreesWithTheAccessLogOfCaddy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("caddy"); err != nil {
		t.Skip("there is no caddy")
	}
	folder, address := t.TempDir(), freeAddress(t)
	port := address[strings.LastIndex(address, ":")+1:]
	log := filepath.Join(folder, "access.log")
	config := fmt.Sprintf(`{
	admin off
	auto_https disable_redirects
	skip_install_trust
	storage file_system %[1]s
}
https://localhost:%[2]s {
	bind 127.0.0.1
	tls internal
	log {
		output file %[3]s
	}
	respond /a "a body of caddy" 200
	respond /missing "not here" 404
	respond /away 302
	respond /big "%[4]s" 200
}
`, folder, port, log, strings.Repeat("0123456789abcdef", 5000))
	file := filepath.Join(folder, "Caddyfile")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	caddy := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
	caddy.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	launch(t, caddy)
	// It listens before it has a certificate.
	waitFor(t, func() bool {
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
		if err == nil {
			c.Close()
		}
		return err == nil
	})

	o := options("https://" + address + "/")
	o.Protocol, o.Connections, o.Streams, o.Threads, o.Requests = H3, 5, 10, 2, 3000
	o.TLS = TLSOptions{InsecureSkipVerify: true, ServerName: "localhost"}
	o.Headers = []Header{{"Host", "localhost:" + port}}
	o.Mix = []Request{{Target: "/a", Weight: 7}, {Target: "/missing", Weight: 1, Status: 404}, {Target: "/away"}, {Target: "/big"}}
	r := load(t, o)
	if r.ErrorTotal() > 0 || r.Unexpected > 0 || r.TLS == nil || r.TLS.Version != "TLSv1.3" {
		t.Fatalf("errors %v, %d unexpected, TLS %+v: %s", r.Errors, r.Unexpected, r.TLS, r.ErrorExample)
	}
	var requests, bytes int64
	var statuses [300]int64
	waitFor(t, func() bool {
		content, _ := os.ReadFile(log)
		requests, bytes, statuses = 0, 0, [300]int64{}
		for line := range strings.Lines(string(content)) {
			var entry struct {
				Status, Size int64
				Request      struct{ Proto string }
			}
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Request.Proto != "HTTP/3.0" {
				continue
			}
			requests++
			bytes += entry.Size
			if entry.Status >= 300 {
				statuses[entry.Status-300]++
			}
		}
		return requests >= o.Requests
	})
	if requests != r.ResponseTotal() || bytes != r.BodyTotal() || statuses != r.Statuses {
		t.Errorf("the engine has %d responses with %d bytes, %v; the log has %d with %d bytes, %v",
			r.ResponseTotal(), r.BodyTotal(), r.Statuses, requests, bytes, statuses)
	}
}
