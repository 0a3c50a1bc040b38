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

// What a vandal does outside of what hubs have stored: it leaves what is not theirs.

// plants puts documents where none can be, for a while: whatever looks through all
// recipients comes by them.
func (v *vandal) plants() error {
	ctx := context.WithoutCancel(v.w.ctx)
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
	it := all[v.d.n(len(all))]
	c, err := v.door.cosmos.NewContainer(database, it.container)
	if err != nil {
		return err
	}
	v.does(func() string {
		_, err := c.UpsertItem(ctx, it.key, []byte(it.text), nil)
		return "plants " + it.text + refusal(err)
	})
	p := v.w.newParty("gardener", 303)
	p.patience = 30 * time.Minute
	for range 3 {
		v.pause(time.Duration(1+v.d.n(60)) * time.Second)
		// Whether it comes to its end is for a test of package cosmos: here its time may run out.
		_, _ = p.call(v.w.ctx, http.MethodPost, "/v1/admin/check", []byte(`{}`), "Content-Type", "application/json")
	}
	v.does(func() string {
		_, err := c.DeleteItem(ctx, it.key, it.id, nil)
		return "what was planted is gone" + refusal(err)
	})
	return nil
}

// announcesNothing sends a message, for a mailbox, that the client of the bus cannot even
// give to a hub. It is delivered until it is too old.
func (v *vandal) announcesNothing(recipient string) {
	line := v.w.newBusLine(v.who)
	client, err := v.w.connecting(line)()
	if err != nil {
		v.w.fail(err)
		return
	}
	defer v.w.closing(client.Close)
	queue := []string{contract.DataAvailableFIFO, contract.DataAvailableQueue}[v.d.n(2)]
	sender, err := client.NewSender(queue, nil)
	if err == nil {
		err = sender.SendMessage(v.w.ctx, &azservicebus.Message{
			SessionID: &recipient, TimeToLive: ptr(time.Minute), Body: []byte("nothing"), ApplicationProperties: map[string]any{"DeadLetterReason": 7},
		}, nil)
	}
	if err == nil {
		v.w.reached("a message was one that nobody can read")
	}
}

// comesAgain damages more while the mailbox is used.
func (v *vandal) comesAgain(b *ward) {
	for range 2 {
		if !v.pause(time.Duration(v.d.n(4000)) * time.Millisecond) {
			return
		}
		v.does(func() string { return v.anything(b.name) })
	}
}

// anything is some damage.
func (v *vandal) anything(recipient string) string {
	if v.d.n(2) == 0 {
		return v.aims(recipient)
	}
	return v.damage(recipient)
}

// regroup has the account say other groups than the hubs are configured with: then
// they do not start, until somebody mends that.
func (v *vandal) regroup() error {
	const seconds = 20
	var right *document
	for _, d := range v.w.shelf.documentsOf("|groups") {
		right = &d
	}
	if right == nil {
		return errors.New("no hub has said what its groups are")
	}
	wrong, ctx := right.copied(), context.WithoutCancel(v.w.ctx)
	v.does(func() string {
		how := ""
		switch groups := wrong.fields["groups"].(map[string]any); v.d.n(3) {
		case 0:
			how = "the groups of the account have an origin more"
			groups["Weather"] = "weather"
		case 1:
			how = "the groups of the account are others"
			groups["Charges"] = "timeseries"
		default:
			how = "the groups of the account: " + wrong.damage(v.d)
		}
		how += refusal(v.door.put(ctx, wrong))
		v.restart() //nolint:contextcheck // hubs have a life of their own
		return how
	})
	v.pause(seconds * time.Second)
	v.does(func() string { return "the groups of the account are right again" + refusal(v.door.put(ctx, *right)) })
	return v.calms()
}
