package link

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// lib/network/network.ts explains the messages' fields.

// Order describes a link.
type Order struct {
	ToServer Direction `json:"toServer"`
	ToClient Direction `json:"toClient"`
	// CPUs are the cores that carry each direction's packets; none: those of the process.
	CPUs     ByDirection[[]int] `json:"cpus"`
	Settings []SettingOrder     `json:"settings"`
}

// ByDirection has a value for each direction.
type ByDirection[T any] struct {
	ToServer T `json:"toServer"`
	ToClient T `json:"toClient"`
}

// Direction describes one direction. A limit of 0 is none.
type Direction struct {
	DelayMs        float64 `json:"delayMs"`
	QueuePackets   int64   `json:"queuePackets,omitempty"`
	BytesPerSecond float64 `json:"bytesPerSecond,omitempty"`
	LossShare      float64 `json:"lossShare,omitempty"`
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

// SettingOutcome is a setting, and why it does not hold.
type SettingOutcome struct {
	SettingOrder
	Problem string `json:"problem,omitempty"`
}

// NetworkUse is since the last report, or the start.
type NetworkUse struct {
	ToServer        Traffic `json:"toServer"`
	ToClient        Traffic `json:"toClient"`
	Retransmits     Sides   `json:"retransmits"`
	ListenOverflows int64   `json:"listenOverflows"`
	// LinkCPUSeconds are of each direction's thread; ToClient has all other threads of the process, too.
	LinkCPUSeconds ByDirection[float64] `json:"linkCpuSeconds"`
}

// Report is the use since the last report.
type Report struct {
	Quiet bool `json:"quiet"`
	NetworkUse
	DeviceDrops int64 `json:"deviceDrops"`
}

// Sides is a count of each side.
type Sides struct {
	Client int64 `json:"client"`
	Server int64 `json:"server"`
}

// Counts are the use up to an instant.
type Counts struct {
	// AtMs is the instant on CLOCK_MONOTONIC.
	AtMs float64 `json:"atMs"`
	NetworkUse
}

// Traffic of one direction.
type Traffic struct {
	Packets    int64      `json:"packets"`
	Kinds      KindCounts `json:"kinds"`
	Bytes      int64      `json:"bytes"`
	Delivered  int64      `json:"delivered"`
	Dropped    int64      `json:"dropped"`
	Lost       int64      `json:"lost"`
	LatenessMs Lateness   `json:"latenessMs"`
}

// Lateness in milliseconds.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// parseOrder reads an order, whose values lib/scenario/model.ts and lib/network/network.ts have checked.
func parseOrder(line []byte) (order Order, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&order); err != nil {
		err = fmt.Errorf("the order cannot be read: %w", err)
	}
	return order, err
}
