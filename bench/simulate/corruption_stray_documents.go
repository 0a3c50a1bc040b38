package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/bench/simulate/containers"
)

// The functions below store documents and send messages that no hub writes.

// plantStrayDocument temporarily stores a document in a partition that hubs never use. Requests that list all recipients
// read this document.
func (v *corruptor) plantStrayDocument() error {
	ctx := context.WithoutCancel(v.sim.ctx)
	notice := `{"id":"notice|masterdata|1","recipient":%s,"kind":"notice","since":1}`
	all := []struct {
		container, id, text string
		key                 azcosmos.PartitionKey
	}{
		{containers.Catalog, "head", `{"id":"head","partitionKey":7,"cabinets":{}}`, azcosmos.NewPartitionKeyNumber(7)},
		{containers.Catalog, "head", `{"id":"head","partitionKey":"|","cabinets":{}}`, azcosmos.NewPartitionKeyString("|")},
		{containers.Bundles, "notice|masterdata|1", fmt.Sprintf(notice, "7"), azcosmos.NewPartitionKeyNumber(7)},
		{containers.Bundles, "notice|masterdata|1", fmt.Sprintf(notice, `"|"`), azcosmos.NewPartitionKeyString("|")},
	}
	it := all[v.rng.IntN(len(all))]
	c, err := v.access.cosmos.NewContainer(database, it.container)
	if err != nil {
		return err
	}
	v.runAtOnce(func() string {
		_, err := c.UpsertItem(ctx, it.key, []byte(it.text), nil)
		return "plants " + it.text + describeRefusal(err)
	})
	p := v.sim.newClient("gardener", 303)
	p.patience = 30 * time.Minute
	for range 3 {
		v.pause(time.Duration(1+v.rng.IntN(60)) * time.Second)
		// The check may time out here; a test of package cosmos checks that a check with a stray document completes.
		_, _ = p.call(v.sim.ctx, http.MethodPost, "/v1/admin/check", []byte(`{}`), "Content-Type", "application/json")
	}
	v.runAtOnce(func() string {
		_, err := c.DeleteItem(ctx, it.key, it.id, nil)
		return "what was planted is gone" + describeRefusal(err)
	})
	return nil
}

// sendUnreadable sends a message for a mailbox that the hub's bus client cannot decode. The bus redelivers the message
// until it expires.
func (v *corruptor) sendUnreadable(recipient string) {
	line := v.sim.newBusTransport(v.who)
	client, err := v.sim.busConnector(line)()
	if err != nil {
		v.sim.Fail(err)
		return
	}
	defer v.sim.closeInTime(client.Close)
	queue := []string{contract.DataAvailableFIFO, contract.DataAvailableQueue}[v.rng.IntN(2)]
	sender, err := client.NewSender(queue, nil)
	if err == nil {
		err = sender.SendMessage(v.sim.ctx, &azservicebus.Message{
			SessionID: &recipient, TimeToLive: ptr(time.Minute), Body: []byte("nothing"), ApplicationProperties: map[string]any{"DeadLetterReason": 7},
		}, nil)
	}
	if err == nil {
		v.sim.MarkReached("a message could not be decoded")
	}
}

// corruptAgain damages the mailbox further while clients use it.
func (v *corruptor) corruptAgain(b *corruptedMailbox) {
	for range 2 {
		if !v.pause(time.Duration(v.rng.IntN(4000)) * time.Millisecond) {
			return
		}
		v.runAtOnce(func() string { return v.corruptAnything(b.name) })
	}
}

// corruptAnything damages a random document or a targeted one, and describes the damage.
func (v *corruptor) corruptAnything(recipient string) string {
	if v.rng.IntN(2) == 0 {
		return v.corruptTarget(recipient)
	}
	return v.corruptDocument(recipient)
}

// corruptGroups changes the stored groups of the account, so that they differ from the hubs' configuration, and later
// restores them. A hub does not start while the groups differ.
func (v *corruptor) corruptGroups() error {
	const seconds = 20
	var right *storedItem
	for _, d := range v.sim.env.stored.documentsOf("|groups") {
		right = &d
	}
	if right == nil {
		return errors.New("no hub has listed its groups")
	}
	wrong, ctx := right.clone(), context.WithoutCancel(v.sim.ctx)
	v.runAtOnce(func() string {
		how := ""
		switch groups := wrong.fields["groups"].(map[string]any); v.rng.IntN(3) {
		case 0:
			how = "the groups of the account have an origin more"
			groups["Weather"] = "weather"
		case 1:
			how = "the groups of the account are others"
			groups["Charges"] = "timeseries"
		default:
			how = "the groups of the account: " + wrong.corruptField(v.rng)
		}
		how += describeRefusal(v.access.putDocument(ctx, wrong))
		v.killHubs() //nolint:contextcheck // hubs have contexts of their own
		return how
	})
	v.pause(seconds * time.Second)
	v.runAtOnce(func() string {
		return "the groups of the account are right again" + describeRefusal(v.access.putDocument(ctx, *right))
	})
	return v.endFaults()
}
