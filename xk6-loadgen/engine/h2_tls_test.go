package engine

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
)

func TestWhatTLSNegotiates(t *testing.T) {
	type negotiation struct {
		key                          func() tls.Certificate
		server                       func(*tls.Config)
		client                       TLSOptions
		version, cipher, keyExchange string // no cipher: the server's choice
	}
	only := func(least, most uint16, curves ...tls.CurveID) func(*tls.Config) {
		return func(c *tls.Config) { c.MinVersion, c.MaxVersion, c.CurvePreferences = least, most, curves }
	}
	const v12, v13, x = "TLSv1.2", "TLSv1.3", "X25519"
	tests := map[string]negotiation{
		"server has TLS 1.2 only":       {rsaKey, only(0, tls.VersionTLS12), TLSOptions{}, v12, "", x},
		"client has TLS 1.2 only":       {rsaKey, nil, TLSOptions{MaxVersion: v12}, v12, "", x},
		"server has TLS 1.3 only":       {rsaKey, only(tls.VersionTLS13, 0), TLSOptions{}, v13, "", x},
		"client has TLS 1.3 only":       {ecdsaKey, nil, TLSOptions{MinVersion: v13}, v13, "", x},
		"both":                          {rsaKey, nil, TLSOptions{MinVersion: v12, MaxVersion: v13}, v13, "", x},
		"server asks for a certificate": {rsaKey, func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }, TLSOptions{}, v13, "", x},
		"new connections":               {ecdsaKey, nil, TLSOptions{MaxVersion: v12, Ciphers: []string{"ecdhe-ecdsa-chacha20-poly1305"}}, v12, "ECDHE-ECDSA-CHACHA20-POLY1305", x},
	}
	for kind, key := range map[string]func() tls.Certificate{"RSA": rsaKey, "ECDSA": ecdsaKey} {
		for _, cipher := range []string{"AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"} {
			name := "ECDHE-" + kind + "-" + cipher
			tests["client's "+name] = negotiation{key, nil, TLSOptions{MaxVersion: v12, Ciphers: []string{name}}, v12, name, x}
		}
	}
	for name, id := range map[string]tls.CurveID{x: tls.X25519, "P-256": tls.CurveP256, "P-384": tls.CurveP384, "P-521": tls.CurveP521} {
		for version, most := range map[string]uint16{v12: tls.VersionTLS12, v13: tls.VersionTLS13} {
			tests["client's "+name+", "+version] = negotiation{rsaKey, nil, TLSOptions{Curves: []string{name}, MaxVersion: version}, version, "", name}
			tests["server's "+name+", "+version] = negotiation{rsaKey, only(0, most, id), TLSOptions{}, version, "", name}
		}
	}
	for name, id := range map[string]tls.CurveID{"X25519MLKEM768": tls.X25519MLKEM768, "SecP256r1MLKEM768": tls.SecP256r1MLKEM768} {
		tests["client's "+name] = negotiation{rsaKey, nil, TLSOptions{Curves: []string{name}}, v13, "", name}
		tests["only the client has "+name] = negotiation{rsaKey, only(0, 0, tls.X25519), TLSOptions{Curves: []string{name, x}}, v13, "", x}
		tests["not asked for "+name] = negotiation{rsaKey, only(0, 0, id, tls.X25519), TLSOptions{}, v13, "", x}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := serverTLS(test.key)
			if test.server != nil {
				test.server(config)
			}
			s := serveH2TLS(t, config, answering(hello))
			o := h2Options(s)
			o.Streams, o.Requests = 1, 6
			o.KeepAlive = name != "new connections"
			o.TLS = test.client
			o.TLS.InsecureSkipVerify = true
			r := load(t, o)
			if r.Responses[0] != 6 || r.TLS == nil {
				t.Fatal(r)
			}
			want := TLSState{test.version, test.cipher, test.keyExchange}
			if want.Cipher == "" {
				want.Cipher = openSSLName(s.handshakes()[0].CipherSuite)
			}
			if *r.TLS != want {
				t.Errorf("negotiated %+v, want %+v", *r.TLS, want)
			}
			for _, state := range s.handshakes() {
				if state.DidResume {
					t.Error("a session was resumed")
				}
			}
			if wantConnections := map[bool]int{true: 2, false: 6}[o.KeepAlive]; len(s.handshakes()) != wantConnections {
				t.Errorf("%d handshakes", len(s.handshakes()))
			}
		})
	}
}

func TestServerName(t *testing.T) {
	t.Parallel()
	s := serveH2TLS(t, serverTLS(ecdsaKey), answering(hello))
	for _, name := range []string{"", "a.example"} {
		o := h2Options(s)
		o.Connections, o.Streams, o.Requests = 1, 1, 1
		o.TLS = TLSOptions{ServerName: name, InsecureSkipVerify: true}
		wantResponses(t, load(t, o), 1)
		states := s.handshakes()
		if got := states[len(states)-1].ServerName; got != name {
			t.Errorf("asked for %q, want %q", got, name)
		}
	}
	o := h2Options(s)
	o.TLS = TLSOptions{ServerName: "b.example"}
	wantTLSFailure(t, o, CauseOther, "b.example")
}

func openSSLName(id uint16) string {
	name := tls.CipherSuiteName(id)
	if strings.HasPrefix(name, "TLS_ECDHE") {
		name = strings.NewReplacer("TLS_", "", "_WITH_", "_", "AES_", "AES", "CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").Replace(name)
		name = strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// wantTLSFailure runs against the server, and checks that each attempt is an error of TLS with this in its text.
func wantTLSFailure(t *testing.T, o Options, cause ErrorCause, hint string) {
	t.Helper()
	o.Connections, o.Streams, o.Requests = 3, 1, 3
	r := load(t, o)
	wantErrors(t, r, ErrTLS, 3)
	wantCause(t, r, cause, 3)
	if !strings.Contains(r.ErrorExample, hint) || strings.Contains(r.ErrorExample, "\n") {
		t.Errorf("example %q, want one line with %q", r.ErrorExample, hint)
	}
	if r.TLS != nil || r.ConnectMs.Max != 0 {
		t.Errorf("TLS %+v, connect %+v", r.TLS, r.ConnectMs)
	}
}

func TestHandshakesThatCannotSucceed(t *testing.T) {
	for name, test := range map[string]struct {
		server   func(*tls.Config)
		protocol Protocol
		client   TLSOptions
		hint     string
	}{
		"a certificate nobody knows":    {nil, H2, TLSOptions{}, "certificate"},
		"client wants TLS 1.3":          {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, H2, TLSOptions{MinVersion: "TLSv1.3", InsecureSkipVerify: true}, "version"},
		"client has TLS 1.2":            {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, HTTP11, TLSOptions{MaxVersion: "TLSv1.2", InsecureSkipVerify: true}, "version"},
		"no curve in common":            {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }, H2, TLSOptions{Curves: []string{"P-521"}, InsecureSkipVerify: true}, "no other curves than P-521"},
		"no cipher in common":           {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, H2, TLSOptions{Ciphers: []string{"ECDHE-ECDSA-AES128-GCM-SHA256"}, InsecureSkipVerify: true}, ""},
		"server does not know ALPN":     {func(c *tls.Config) { c.NextProtos = nil }, H2, TLSOptions{InsecureSkipVerify: true}, "h2"},
		"server has HTTP/1.1 only":      {func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, H2, TLSOptions{InsecureSkipVerify: true}, ""},
		"server wants a certificate":    {func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 }, H2, TLSOptions{InsecureSkipVerify: true}, ""},
		"server is out of certificates": {func(c *tls.Config) { c.Certificates = nil }, H2, TLSOptions{InsecureSkipVerify: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := serverTLS(rsaKey)
			if test.server != nil {
				test.server(config)
			}
			if config.Certificates == nil {
				config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.EOF }
			}
			s := serveH2TLS(t, config, answering(hello))
			o := h2Options(s)
			o.Protocol, o.TLS = test.protocol, test.client
			wantTLSFailure(t, o, CauseOther, test.hint)
		})
	}
}

func TestHTTP1OverTLSNeedsNoALPN(t *testing.T) {
	config := serverTLS(rsaKey)
	config.NextProtos = nil
	s := servePeer(t, true, func(s *peerServer, c net.Conn) { always(ok)(s.testServer, tls.Server(c, config)) })
	o := options(s.url)
	o.Requests, o.TLS.InsecureSkipVerify = 10, true
	if r := load(t, o); r.Responses[0] != 10 || r.TLS == nil {
		t.Error(r)
	}
}

func TestPlainHTTPToATLSPort(t *testing.T) {
	for _, protocol := range []Protocol{HTTP11, H2C} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			s := serveH2TLS(t, serverTLS(rsaKey), answering(hello))
			o := options(strings.Replace(s.url, "https:", "http:", 1))
			o.Protocol, o.Requests = protocol, 4
			r := load(t, o)
			if r.Errors[ErrProtocol]+r.Errors[ErrRead] != 4 || protocol == H2C && r.Errors[ErrProtocol] > 0 && !strings.Contains(r.ErrorExample, "https") {
				t.Error(r)
			}
		})
	}
}
