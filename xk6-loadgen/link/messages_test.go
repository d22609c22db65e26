package link

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestOrders(t *testing.T) {
	order, err := parseOrder([]byte(`{"toServer":{"delayMs":100.5,"queuePackets":1000,"bytesPerSecond":1e6,"lossShare":0.25},
		"toClient":{"delayMs":0},"settings":[{"side":"client","name":"net.ipv4.tcp_rmem","value":"1 2 3"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	d := order.ToServer
	if d.DelayMs != 100.5 || *d.QueuePackets != 1000 || *d.BytesPerSecond != 1e6 || d.LossShare != 0.25 {
		t.Errorf("%+v", d)
	}
	if order.ToClient != (Direction{}) {
		t.Errorf("%+v", order.ToClient)
	}
	if len(order.Settings) != 1 || order.Settings[0] != (SettingOrder{Client, "net.ipv4.tcp_rmem", "1 2 3"}) {
		t.Errorf("%+v", order.Settings)
	}
}

func TestWrongOrders(t *testing.T) {
	const right = `{"toServer":{"delayMs":1},"toClient":{"delayMs":1},"settings":[{"side":"server","name":"net.a","value":"1"}]}`
	if _, err := parseOrder([]byte(right)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{right, "", "the order cannot be read: EOF"},
		{right, "report", "the order cannot be read: invalid character 'r' looking for beginning of value"},
		{right, "[]", "the order cannot be read: json: cannot unmarshal array"},
		{right, right[:40], "the order cannot be read: unexpected EOF"},
		{right, right + right, "more than one document"},
		{right, right + "]", "more than one document"},
		{right, "null", "toServer.delayMs is missing or not 0 to 60000"},
		{`{"toServer":{"delayMs":1},`, `{`, "toServer.delayMs is missing or not 0 to 60000"},
		{`"toClient":{"delayMs":1}`, `"toClient":{}`, "toClient.delayMs is missing or not 0 to 60000"},
		{`{"delayMs":1}`, `{"delayMs":-1}`, "toServer.delayMs is missing or not 0 to 60000"},
		{`{"delayMs":1}`, `{"delayMs":60001}`, "toServer.delayMs is missing or not 0 to 60000"},
		{`{"delayMs":1}`, `{"delayMs":"1"}`, "cannot unmarshal string"},
		{`{"delayMs":1}`, `{"delayMs":1e999}`, "cannot unmarshal number"},
		{`{"delayMs":1}`, `{"delayMs":1,"delay":1}`, `unknown field "delay"`},
		{`{"delayMs":1}`, `{"delayMs":1,"queuePackets":0}`, "toServer.queuePackets is 1 or more"},
		{`{"delayMs":1}`, `{"delayMs":1,"queuePackets":1.5}`, "cannot unmarshal number 1.5"},
		{`{"delayMs":1}`, `{"delayMs":1,"bytesPerSecond":0}`, "toServer.bytesPerSecond is 1 or more"},
		{`{"delayMs":1}`, `{"delayMs":1,"lossShare":1.01}`, "toServer.lossShare is 0 to 1"},
		{`{"delayMs":1}`, `{"delayMs":1,"lossShare":-0.1}`, "toServer.lossShare is 0 to 1"},
		{`[{"side":"server","name":"net.a","value":"1"}]`, `null`, "settings are missing"},
		{`,"settings"`, `,"cpus":{"toServer":[1],"toClient":[-1]},"settings"`, "-1 is no number of a core"},
		{`,"settings"`, `,"cpus":{"toServer":[65536],"toClient":[1]},"settings"`, "65536 is no number of a core"},
		{`"server"`, `"both"`, `the side of a setting is client or server, not "both"`},
		{`"server"`, `""`, `the side of a setting is client or server, not ""`},
		{`net.a`, ``, `"" is no name of a kernel setting`},
		{`net.a`, `net`, `"net" is no name of a kernel setting`},
		{`net.a`, `net.`, `"net." is no name of a kernel setting`},
		{`net.a`, `net..a`, `"net..a" is no name of a kernel setting`},
		{`net.a`, `net.../fs`, `"net.../fs" is no name of a kernel setting`},
		{`net.a`, `net.a//b`, `"net.a//b" is no name of a kernel setting`},
		{`net.a`, `net./a`, `"net./a" is no name of a kernel setting`},
		{`net.a`, `net/core/somaxconn`, `"net/core/somaxconn" is no name of a kernel setting`},
		{`net.a`, `net.a\n`, `is no name of a kernel setting`},
		{`"1"`, `""`, `"" is no value for net.a`},
		{`"1"`, `" "`, `" " is no value for net.a`},
		{`"1"`, `"1\n2"`, `"1\n2" is no value for net.a`},
		{`"1"`, `1`, "cannot unmarshal number"},
	} {
		line := strings.Replace(right, c.from, c.to, 1)
		if _, err := parseOrder([]byte(line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", line, err, c.want)
		}
	}
}

// What is answered has the fields of lib/network/link-messages.ts, also where they are 0 or empty.
func TestAnswersHaveAllFields(t *testing.T) {
	const traffic = `{"packets":0,"kinds":{"syn":0,"synAck":0,"ack":0,"data":0,"dataFin":0,"fin":0,"reset":0,"other":0},` +
		`"bytes":0,"delivered":0,"dropped":0,"lost":0,"latenessMs":{"p50":0,"p99":0,"max":0}}`
	for _, c := range []struct {
		answer any
		want   string
	}{
		{Report{}, `{"quiet":false,"toServer":` + traffic + `,"toClient":` + traffic +
			`,"retransmits":{"client":0,"server":0},"listenOverflows":0,"linkCpuSeconds":{"toServer":0,"toClient":0},"deviceDrops":0}`},
		{Ready{Settings: []SettingOutcome{{SettingOrder: SettingOrder{Server, "net.a", "1"}}, {SettingOrder{Client, "net.b", "2"}, "why"}}},
			`{"server":{"netns":"","address":""},"client":{"netns":"","address":""},"settings":[` +
				`{"side":"server","name":"net.a","value":"1"},{"side":"client","name":"net.b","value":"2","problem":"why"}],"toServerThread":0}`},
	} {
		var text bytes.Buffer
		if err := json.NewEncoder(&text).Encode(c.answer); err != nil || text.String() != c.want+"\n" {
			t.Errorf("%s, want %s (%v)", text.String(), c.want, err)
		}
	}
}
