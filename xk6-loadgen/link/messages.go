package link

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// lib/network/network.ts explains the messages' fields.

type Order struct {
	ToServer Direction          `json:"toServer"`
	ToClient Direction          `json:"toClient"`
	CPUs     ByDirection[[]int] `json:"cpus"` // CPUs are the cores that carry each direction's packets; none: those of the process
	Settings []SettingOrder     `json:"settings"`
	Seed     uint64             `json:"seed"` // Seed says which packets are lost
}

type ByDirection[T any] struct {
	ToServer T `json:"toServer"`
	ToClient T `json:"toClient"`
}

// Direction has limits of 0 for none.
type Direction struct {
	DelayMs        float64 `json:"delayMs"`
	QueuePackets   int64   `json:"queuePackets,omitempty"`
	BytesPerSecond float64 `json:"bytesPerSecond,omitempty"`
	LossShare      float64 `json:"lossShare,omitempty"`
	// LossBurstPackets is how many packets in a row are lost in the mean. 0: each by itself, so 1/(1-LossShare).
	LossBurstPackets float64 `json:"lossBurstPackets,omitempty"`
}

type SettingOrder struct {
	Side  Side   `json:"side"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Side string

const Client, Server Side = "client", "server"

type Ready struct {
	Server         SideReady        `json:"server"`
	Client         SideReady        `json:"client"`
	Settings       []SettingOutcome `json:"settings"`
	ToServerThread int              `json:"toServerThread"` // ToServerThread carries the packets to the server
}

type SideReady struct {
	Netns   string `json:"netns"`
	Address string `json:"address"`
}

type SettingOutcome struct {
	SettingOrder
	Problem string `json:"problem,omitempty"`
}

type NetworkUse struct {
	ToServer        Traffic `json:"toServer"`
	ToClient        Traffic `json:"toClient"`
	Retransmits     Sides   `json:"retransmits"`
	ListenOverflows int64   `json:"listenOverflows"`
	// LinkCPUSeconds are of each direction's thread; ToClient has all other threads of the process, too.
	LinkCPUSeconds ByDirection[float64] `json:"linkCpuSeconds"`
}

type Report struct {
	Quiet bool `json:"quiet"`
	NetworkUse
	DeviceDrops int64 `json:"deviceDrops"`
}

type Sides struct {
	Client int64 `json:"client"`
	Server int64 `json:"server"`
}

type Counts struct {
	AtMs float64 `json:"atMs"` // the instant on CLOCK_MONOTONIC
	NetworkUse
}

type Traffic struct {
	Packets    int64      `json:"packets"`
	Kinds      KindCounts `json:"kinds"`
	Bytes      int64      `json:"bytes"`
	Delivered  int64      `json:"delivered"`
	Dropped    int64      `json:"dropped"`
	Lost       int64      `json:"lost"`
	LatenessMs Lateness   `json:"latenessMs"`
}

type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func parseOrder(line []byte) (order Order, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&order); err != nil {
		err = fmt.Errorf("the order cannot be read: %w", err)
	}
	return order, err
}
