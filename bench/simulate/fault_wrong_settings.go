package simulate

import (
	"strings"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// busKeys are the keys of the namespace: one of the hubs, and one without the right to send.
var busKeys = []busembedded.Key{
	{Name: busembedded.WellKnownKeyName, Secret: busembedded.WellKnownKey, Rights: busembedded.All},
	{Name: "listener", Secret: busembedded.WellKnownKey, Rights: busembedded.Listen},
}

// Wrong settings of a hub. With them a hub does not start, or runs without the affected function until it is started
// with the right settings.
var wrongSettings = []func(*config.Config){
	func(c *config.Config) { c.Cosmos.Key = "bm8ga2V5" },
	func(c *config.Config) { c.Cosmos.Key = "this is no key" },
	func(c *config.Config) { c.Blob.Key = "bm8ga2V5" },
	func(c *config.Config) { c.Limits.Content = 7 },
	func(c *config.Config) { c.ServiceBus.FIFO = c.ServiceBus.Plain },
	func(c *config.Config) { c.ServiceBus.FIFO, c.ServiceBus.Plain = "missing", "missing-too" },
	func(c *config.Config) {
		c.ServiceBus.Connection = config.Secret(strings.Replace(string(c.ServiceBus.Connection), "SharedAccessKey=", "SharedAccessKey=no", 1))
	},
	useListenOnlyKey,
	func(c *config.Config) { // other groups than those stored in the account
		group, err := domain.ParseGroup("timeseries")
		if err == nil {
			c.Domains = append(config.Domains{{Name: domain.MarketRoles, Group: group}}, c.Domains...)
		}
	},
	func(c *config.Config) { // queues that do not exist, or are used otherwise
		c.Domains = append(config.Domains{}, c.Domains...)
		for i := range c.Domains {
			c.Domains[i].Queues.Request, c.Domains[i].Queues.Reply, c.Domains[i].Queues.Dequeue = "missing", "missing-too", "missing-as-well"
		}
	},
	func(c *config.Config) {
		c.Domains = append(config.Domains{}, c.Domains...)
		for i := range c.Domains {
			c.Domains[i].Queues.Reply = "dataavailable"
		}
	},
}

// useListenOnlyKey gives a hub a key without the right to send.
func useListenOnlyKey(c *config.Config) {
	c.ServiceBus.Connection = config.Secret(strings.Replace(string(c.ServiceBus.Connection), "SharedAccessKeyName="+busembedded.WellKnownKeyName, "SharedAccessKeyName=listener", 1))
}

// misconfigure sometimes gives a hub wrong settings. At least one hub keeps the right ones.
func (h *hub) misconfigure(rng random.Source, c *config.Config) {
	if !h.sim.plan.misconfiguresHubs || h.sim.FaultFree || h.sim.faults.containerDropped.Load() || h.sim.hubAt(1-h.index) == nil || rng.IntN(4) > 0 {
		return
	}
	if h.sim.plan.misconfiguresBus && rng.IntN(3) == 0 {
		useListenOnlyKey(c)
	} else {
		wrongSettings[rng.IntN(len(wrongSettings))](c)
	}
	h.isMisconfigured = true
	h.sim.MarkReached("a hub had wrong settings")
}

// stopMisconfigured kills all hubs with wrong settings.
func (sim *simulation) stopMisconfigured() {
	for i := range sim.env.hubs {
		if h := sim.hubAt(i); h != nil && h.isMisconfigured {
			sim.Log(h.who + " is to get its right settings")
			h.kill()
		}
	}
}
