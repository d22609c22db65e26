package link

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The messages are those of lib/network/link-messages.ts, where their fields are explained.

// Order is what a link is to be.
type Order struct {
	ToServer Direction `json:"toServer"`
	ToClient Direction `json:"toClient"`
	// CPUs are the cores that each direction's packets are carried on; none: those of the process.
	CPUs     CPUs           `json:"cpus"`
	Settings []SettingOrder `json:"settings"`
}

// CPUs are numbers of cores, by direction.
type CPUs struct {
	ToServer []int `json:"toServer"`
	ToClient []int `json:"toClient"`
}

// Direction is what happens to packets in one direction. Of what is nil there is none.
type Direction struct {
	DelayMs        float64  `json:"delayMs"`
	QueuePackets   *int64   `json:"queuePackets,omitempty"`
	BytesPerSecond *float64 `json:"bytesPerSecond,omitempty"`
	LossShare      float64  `json:"lossShare,omitempty"`
}

// SettingOrder is a kernel setting of one side's namespace.
type SettingOrder struct {
	Side  Side   `json:"side"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Side is one end of the link.
type Side string

// The two sides.
const (
	Client Side = "client"
	Server Side = "server"
)

// Ready says where the two sides are.
type Ready struct {
	Server   SideReady        `json:"server"`
	Client   SideReady        `json:"client"`
	Settings []SettingOutcome `json:"settings"`
	// ToServerThread carries the packets to the server.
	ToServerThread int `json:"toServerThread"`
}

// SideReady is where one side is.
type SideReady struct {
	Netns   string `json:"netns"`
	Address string `json:"address"`
}

// SettingOutcome is what became of a setting.
type SettingOutcome struct {
	SettingOrder
	Problem string `json:"problem,omitempty"`
}

// NetworkUse is what has happened since the last report, or the start.
type NetworkUse struct {
	ToServer        Traffic     `json:"toServer"`
	ToClient        Traffic     `json:"toClient"`
	Retransmits     Sides       `json:"retransmits"`
	ListenOverflows int64       `json:"listenOverflows"`
	LinkCPUSeconds  ByDirection `json:"linkCpuSeconds"`
}

// Report is what happened since the last one.
type Report struct {
	Quiet bool `json:"quiet"`
	NetworkUse
	DeviceDrops int64 `json:"deviceDrops"`
}

// ByDirection are seconds of each direction's thread; with ToClient's are all others of the process.
type ByDirection struct {
	ToServer float64 `json:"toServer"`
	ToClient float64 `json:"toClient"`
}

// Sides is a count of each side.
type Sides struct {
	Client int64 `json:"client"`
	Server int64 `json:"server"`
}

// Counts are what has happened by an instant, since the last report.
type Counts struct {
	// AtMs is the instant: milliseconds of CLOCK_MONOTONIC.
	AtMs float64 `json:"atMs"`
	NetworkUse
}

// Traffic is what went over the link in one direction.
type Traffic struct {
	Packets    int64      `json:"packets"`
	Kinds      KindCounts `json:"kinds"`
	Bytes      int64      `json:"bytes"`
	Delivered  int64      `json:"delivered"`
	Dropped    int64      `json:"dropped"`
	Lost       int64      `json:"lost"`
	LatenessMs Lateness   `json:"latenessMs"`
}

// Lateness is a distribution of milliseconds.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// mostCPUs is more than Linux can have.
const mostCPUs = 1 << 16

// longestDelay keeps a slip of units from looking like a link that hangs.
const longestDelay = time.Minute

// settingName is a name as sysctl writes it: a slash stands for a dot within a part, as in conf.eth0/1. No part is empty, or begins or
// ends with one: what it becomes stays in its folder.
var settingName = regexp.MustCompile(`^[a-zA-Z0-9_-]+(/[a-zA-Z0-9_-]+)*(\.[a-zA-Z0-9_-]+(/[a-zA-Z0-9_-]+)*)+$`)

// parseOrder reads an order. Its errors name what is wrong in it.
func parseOrder(line []byte) (Order, error) {
	// What has to be there has no value yet that could be meant.
	order := Order{ToServer: Direction{DelayMs: -1}, ToClient: Direction{DelayMs: -1}}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&order); err != nil {
		return order, fmt.Errorf("the order cannot be read: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return order, fmt.Errorf("the order cannot be read: there is more than one document in its line")
	}
	if err := cmp.Or(order.ToServer.check("toServer"), order.ToClient.check("toClient")); err != nil {
		return order, err
	}
	if order.Settings == nil {
		return order, fmt.Errorf("settings are missing: a list, which may be empty")
	}
	for _, cpu := range slices.Concat(order.CPUs.ToServer, order.CPUs.ToClient) {
		if cpu < 0 || cpu >= mostCPUs {
			return order, fmt.Errorf("%d is no number of a core", cpu)
		}
	}
	for _, s := range order.Settings {
		switch {
		case s.Side != Client && s.Side != Server:
			return order, fmt.Errorf("the side of a setting is client or server, not %q", s.Side)
		case !settingName.MatchString(s.Name):
			return order, fmt.Errorf("%q is no name of a kernel setting, such as net.core.somaxconn", s.Name)
		case strings.TrimSpace(s.Value) == "" || strings.ContainsAny(s.Value, "\n\x00"):
			return order, fmt.Errorf("%q is no value for %s", s.Value, s.Name)
		}
	}
	return order, nil
}

func (d *Direction) check(name string) error {
	// Limits of JSON's own: no number in it is infinite or NaN.
	switch {
	case d.DelayMs < 0 || d.DelayMs > float64(longestDelay.Milliseconds()):
		return fmt.Errorf("%s.delayMs is missing or not 0 to %d", name, longestDelay.Milliseconds())
	case d.QueuePackets != nil && *d.QueuePackets < 1:
		return fmt.Errorf("%s.queuePackets is 1 or more; without it there is no limit", name)
	case d.BytesPerSecond != nil && *d.BytesPerSecond < 1:
		return fmt.Errorf("%s.bytesPerSecond is 1 or more; without it there is no limit", name)
	case d.LossShare < 0 || d.LossShare > 1:
		return fmt.Errorf("%s.lossShare is 0 to 1", name)
	}
	return nil
}
