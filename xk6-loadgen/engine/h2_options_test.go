package engine

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestTLSOptionsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"minVersion must be":                func(o *Options) { o.TLS.MinVersion = "1.2" },
		"maxVersion must be":                func(o *Options) { o.TLS.MaxVersion = "TLSv1.1" },
		"minVersion is above":               func(o *Options) { o.TLS.MinVersion, o.TLS.MaxVersion = "TLSv1.3", "TLSv1.2" },
		"no cipher \"RC4-MD5\"":             func(o *Options) { o.TLS.Ciphers = []string{"RC4-MD5"} },
		"TLS_AES_128_GCM_SHA256 is TLS 1.3": func(o *Options) { o.TLS.Ciphers = []string{"TLS_AES_128_GCM_SHA256"} },
		"no curve \"secp256k1\"":            func(o *Options) { o.TLS.Curves = []string{"P-256", "secp256k1"} },
		"h2c is HTTP/2 without TLS":         func(o *Options) { o.Protocol = H2C },
		"all must have one scheme":          func(o *Options) { o.URLs = append(o.URLs, "http://127.0.0.1:9/") },
		"h2 is HTTP/2 over TLS":             func(o *Options) { o.URLs = []string{"http://127.0.0.1:9/"} },
		"tls: is for https": func(o *Options) {
			o.URLs, o.Protocol, o.TLS.MinVersion = []string{"http://127.0.0.1:9/"}, HTTP11, "TLSv1.2"
		},
		"HTTP/1 has one request":    func(o *Options) { o.Protocol, o.Streams = HTTP11, 2 },
		"streams: must be":          func(o *Options) { o.Streams = 0 },
		"has one stream":            func(o *Options) { o.Streams, o.KeepAlive = 2, false },
		"rate: must be":             func(o *Options) { o.Rate = -1 },
		"buckets: upper ends":       func(o *Options) { o.Buckets = []time.Duration{time.Second, time.Second} },
		"not allowed in HTTP/2":     func(o *Options) { o.Headers = []Header{{"TE", "trailers"}} },
		"with HTTP/2 they may take": func(o *Options) { o.Headers = []Header{{"X", strings.Repeat("\xff", 20_000)}} },
	} {
		o := options("https://127.0.0.1:9/")
		o.Protocol, o.Requests = H2, 1
		change(&o)
		if _, err := Run(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
