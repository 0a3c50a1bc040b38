package deployment

import "github.com/messagehub/messagehub/cmd/node/config"

// A Queue describes a Service Bus queue.
type Queue struct {
	Name     string `json:"name"`
	Use      string `json:"use"`
	Sessions bool   `json:"sessions"`

	Lock          string `json:"lockDuration"` // ISO 8601 duration, such as PT1M
	MaxDeliveries int32  `json:"maxDeliveryCount"`
	MaxMegabytes  int32  `json:"maxSizeInMegabytes"`

	// DeadLettersExpired says that an expired message becomes a dead letter;
	// otherwise an expired message is lost.
	DeadLettersExpired bool `json:"deadLetteringOnMessageExpiration"`

	TimeToLive string `json:"defaultMessageTimeToLive,omitempty"` // ISO 8601 duration, such as PT10M; "" for forever
}

const (
	lock          = "PT1M" // a receiver that needs more time for a message renews the lock
	maxDeliveries = 10     // default of Service Bus and of the embedded bus

	// answerLife is how long a domain's reply is stored. No receiver waits
	// longer for a reply.
	answerLife = "PT10M"

	// Sizes that the Standard tier of Service Bus permits.
	eventMegabytes  = 5120 // enough for the events that domains send while no hub runs
	domainMegabytes = 1024
)

// Queues returns all Service Bus queues that a hub needs.
func Queues(cfg *config.Config) []Queue {
	var all []Queue
	add := func(q Queue) {
		if q.Name == "" {
			return
		}
		q.Lock, q.MaxDeliveries = lock, maxDeliveries
		all = append(all, q)
	}
	events := func(name, use string, sessions bool) {
		add(Queue{Name: name, Use: use, Sessions: sessions, MaxMegabytes: eventMegabytes, DeadLettersExpired: true})
	}
	events(cfg.ServiceBus.FIFO, "events, in the order of each recipient", true)
	events(cfg.ServiceBus.Plain, "events of senders that set no session", false)
	events(cfg.Objects.Queue, "events of objects", false)
	for _, d := range cfg.Domains {
		events(d.Ingest, "events of "+d.Name.String()+" alone", true)
	}
	queues := cfg.Queues()
	for _, origin := range cfg.Groups().Origins() {
		q, name := queues[origin], origin.String()
		add(Queue{Name: q.Request, Use: "requests for content, to " + name, Sessions: true, MaxMegabytes: domainMegabytes})
		add(Queue{Name: q.Reply, Use: "answers to requests, from " + name, Sessions: true, MaxMegabytes: domainMegabytes, TimeToLive: answerLife})
		add(Queue{Name: q.Dequeue, Use: "notices that bundles were dequeued, to " + name, MaxMegabytes: domainMegabytes, DeadLettersExpired: true})
	}
	return all
}
