package link

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestOrders(t *testing.T) {
	const text = `{"toServer":{"delayMs":100.5,"queuePackets":1000,"bytesPerSecond":1e6,"lossShare":0.25,"lossBurstPackets":3},"toClient":{"delayMs":0},` +
		`"cpus":{"toServer":[1],"toClient":[0,2]},"settings":[{"side":"client","name":"net.ipv4.tcp_rmem","value":"1 2 3"}],"seed":7}`
	order, err := parseOrder([]byte(text))
	want := Order{
		ToServer: Direction{DelayMs: 100.5, QueuePackets: 1000, BytesPerSecond: 1e6, LossShare: 0.25, LossBurstPackets: 3},
		CPUs:     ByDirection[[]int]{ToServer: []int{1}, ToClient: []int{0, 2}},
		Settings: []SettingOrder{{Client, "net.ipv4.tcp_rmem", "1 2 3"}},
		Seed:     7,
	}
	if err != nil || !reflect.DeepEqual(order, want) {
		t.Errorf("%+v (%v)", order, err)
	}
	for line, want := range map[string]string{
		"":        "the order cannot be read: EOF",
		"report":  "the order cannot be read: invalid character 'r' looking for beginning of value",
		text[:40]: "the order cannot be read: unexpected EOF",
		strings.Replace(text, "delayMs", "delay", 1): `unknown field "delay"`,
	} {
		if _, err := parseOrder([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// What is answered has the fields of lib/features/network/network.ts, also where they are 0 or empty.
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
