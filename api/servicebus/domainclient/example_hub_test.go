package domainclient_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// An exampleHub is a hub that handles one event in an example. It panics if something fails,
// because an example has no testing.T.
type exampleHub struct {
	*market
	connect  domainclient.Connect
	exchange *container.Client
	end      *exampleTB
}

// An exampleTB implements testing.TB for an example, which has no testing.T.
type exampleTB struct {
	testing.TB
	last []func()
}

func (*exampleTB) Helper()                      {}
func (*exampleTB) Context() context.Context     { return context.Background() }
func (e *exampleTB) Cleanup(f func())           { e.last = append(e.last, f) }
func (*exampleTB) Errorf(text string, a ...any) { panic(fmt.Sprintf(text, a...)) }
func (*exampleTB) FailNow()                     { panic("the example failed") }
func (*exampleTB) Fatalf(text string, a ...any) { panic(fmt.Sprintf(text, a...)) }

func openExampleHub() *exampleHub {
	e := &exampleTB{}
	m := newMarket(e)
	return &exampleHub{m, connectTo(m.bus), m.exchange, e}
}

func (h *exampleHub) close() {
	for i := len(h.end.last) - 1; i >= 0; i-- {
		h.end.last[i]()
	}
}

// peek requests content for the actor's announced event, as the actor's Peek would.
func (h *exampleHub) peek(actor string) string {
	var e contract.DataAvailableNotificationContract
	require.NoError(h.end, proto.Unmarshal(h.receiveEvents(actor, 1)[0].Body, &e))
	process := "bundle_" + actor
	return string(h.receiveContent(h.requestContent(testBundle{process: process, events: []uuid.UUID{uuid.MustParse(e.GetUUID())}}), process))
}

// dequeue notifies the domain that the actor has confirmed the bundle.
func (h *exampleHub) dequeue(actor string) { h.notify("bundle_"+actor, actor) }
