package node

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// A queueDifference is a changeable property of a queue that differs from the
// table.
type queueDifference struct {
	property, has, want string
	cost                string // consequence of the difference; "" if the operator may have chosen it
	correct             func(*admin.QueueProperties)
}

func (d *queueDifference) String() string {
	if d.cost == "" {
		return fmt.Sprintf("%s %s, want %s", d.property, d.has, d.want)
	}
	return fmt.Sprintf("%s %s, want %s: %s", d.property, d.has, d.want, d.cost)
}

func (d *queueDifference) change() string {
	return fmt.Sprintf("%s %s, was %s", d.property, d.want, d.has)
}

// compareQueue returns those properties of a queue that differ from the table.
// A property that the namespace does not report counts as different.
func compareQueue(q *deployment.Queue, has *admin.QueueProperties) []*queueDifference {
	var all []*queueDifference
	add := func(isEqual bool, d queueDifference) {
		if !isEqual {
			all = append(all, &d)
		}
	}
	life, cost := q.TimeToLive, "answers that no receiver waits for fill the queue"
	if life == "" {
		life, cost = deployment.Forever, "what is not received by then is not delivered"
	}
	add(isSpan(has.DefaultMessageTimeToLive, life), queueDifference{
		"default time to live", spanText(has.DefaultMessageTimeToLive), spanText(&life), cost,
		func(p *admin.QueueProperties) { p.DefaultMessageTimeToLive = &life },
	})
	add(isValue(has.DeadLetteringOnMessageExpiration, q.DeadLettersExpired), queueDifference{
		"dead letters of expired messages", valueText(has.DeadLetteringOnMessageExpiration), fmt.Sprint(q.DeadLettersExpired),
		map[bool]string{true: "messages whose sender set a time to live are lost", false: "dead letters that no process reads fill the queue"}[q.DeadLettersExpired],
		func(p *admin.QueueProperties) { p.DeadLetteringOnMessageExpiration = &q.DeadLettersExpired },
	})
	add(isSpan(has.LockDuration, q.Lock), queueDifference{
		"lock duration", spanText(has.LockDuration), q.Lock, "",
		func(p *admin.QueueProperties) { p.LockDuration = &q.Lock },
	})
	add(isValue(has.MaxDeliveryCount, q.MaxDeliveries), queueDifference{
		"max delivery count", valueText(has.MaxDeliveryCount), fmt.Sprint(q.MaxDeliveries), "",
		func(p *admin.QueueProperties) { p.MaxDeliveryCount = &q.MaxDeliveries },
	})
	add(has.MaxSizeInMegabytes != nil && *has.MaxSizeInMegabytes >= q.MaxMegabytes, queueDifference{
		"maximum size in MB", valueText(has.MaxSizeInMegabytes), fmt.Sprint(q.MaxMegabytes), "senders are refused when it is full",
		func(p *admin.QueueProperties) { p.MaxSizeInMegabytes = &q.MaxMegabytes },
	})
	return all
}

func isValue[T comparable](has *T, want T) bool { return has != nil && *has == want }

func valueText[T any](v *T) string {
	if v == nil {
		return "not set"
	}
	return fmt.Sprint(*v)
}

// endless is the prefix of every spelling of Service Bus's longest duration.
const endless = "P10675199D"

func isSpan(has *string, want string) bool {
	return has != nil && (*has == want || strings.HasPrefix(*has, endless) && strings.HasPrefix(want, endless))
}

func spanText(span *string) string {
	if span != nil && strings.HasPrefix(*span, endless) {
		return "none"
	}
	return valueText(span)
}
