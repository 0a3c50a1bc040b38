package simulate

import (
	"strings"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// busKeys are the keys of the namespace: the key of the hubs, and a key without the right to send.
var busKeys = []busembedded.Key{
	{Name: busembedded.WellKnownKeyName, Secret: busembedded.WellKnownKey, Rights: busembedded.All},
	{Name: "listener", Secret: busembedded.WellKnownKey, Rights: busembedded.Listen},
}

// wrongSettings lists changes that make the settings of a hub wrong. With wrong settings, a hub does not start, or it
// runs without the affected function until it is restarted with the correct settings.
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
	func(c *config.Config) { // the groups differ from the groups that the account stores
		group, err := domain.ParseGroup("timeseries")
		if err == nil {
			c.Domains = append(config.Domains{{Name: domain.MarketRoles, Group: group}}, c.Domains...)
		}
	},
	func(c *config.Config) { // the queues do not exist, or have a different purpose
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

// useListenOnlyKey configures a key without the right to send.
func useListenOnlyKey(c *config.Config) {
	c.ServiceBus.Connection = config.Secret(strings.Replace(string(c.ServiceBus.Connection), "SharedAccessKeyName="+busembedded.WellKnownKeyName, "SharedAccessKeyName=listener", 1))
}

// misconfigure sometimes makes the settings of a hub wrong. It does nothing while the second hub is down.
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
