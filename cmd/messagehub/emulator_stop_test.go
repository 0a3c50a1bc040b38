package main

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
)

// endlessQuery joins a document's long list with itself so often that the query
// never completes in reasonable time.
const endlessQuery = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l"

func TestEmulator_StopsWhileAQueryRuns(t *testing.T) {
	e := startEmulator(t, "--in-memory", "--query-steps", fmt.Sprint(int64(1)<<62), "--log-requests")
	c := newContainer(t, e.account(t, ""))
	key := azcosmos.NewPartitionKeyString("p")
	list := strings.TrimSuffix(strings.Repeat("1,", 2000), ",")
	_, err := c.CreateItem(t.Context(), key, []byte(`{"id":"a","pk":"p","l":[`+list+`]}`), nil)
	require.NoError(t, err)

	sent := make(chan struct{})
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			close(sent)
		}
	}})
	answered := make(chan error, 1)
	go func() {
		_, err := c.NewQueryItemsPager(endlessQuery, key, nil).NextPage(ctx)
		answered <- err
	}()
	<-sent
	began := time.Now()
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-e.exited:
		require.NoError(t, err, e.log.String())
	case <-time.After(patience):
		require.Fail(t, "the emulator waits for the query")
	}
	t.Log("stopped after", time.Since(began))
	giveUp() // prevents the client from connecting again
	require.Error(t, <-answered)
}
