package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// brokerSettings returns settings with which the broker soon gives up on a
// failing consumer.
func brokerSettings(dir string) config.Config {
	cfg := pushSettings(dir)
	cfg.Admin.Token = "token-of-the-operators"
	cfg.Broker.RetryDelay, cfg.Broker.MaxRetry = 10*time.Millisecond, 2
	return cfg
}

// putParty creates or replaces a party of the broker, and checks the status of
// the response.
func putParty(t *testing.T, n *node.Node, want int, path string, form url.Values) {
	t.Helper()
	status, body := send(t, n, http.MethodPut, "/broker"+path, "application/x-www-form-urlencoded", form.Encode(), "X-Broker-Admin-Token", "token-of-the-operators")
	require.Equal(t, want, status, body)
}

// putChannel creates a producer, a channel, and a consumer for each callback.
func putChannel(t *testing.T, n *node.Node, consumers map[string]string) {
	t.Helper()
	putParty(t, n, http.StatusCreated, "/producer/maker", url.Values{"token": {"of-the-producer"}})
	putParty(t, n, http.StatusCreated, "/channel/prices", url.Values{"token": {"of-the-channel"}})
	for name, callback := range consumers {
		putParty(t, n, http.StatusCreated, "/channel/prices/consumer/"+name, url.Values{"token": {"of-" + name}, "callbackUrl": {callback}})
	}
}

// broadcast sends a message to the channel, and returns the message's path.
func broadcast(t *testing.T, n *node.Node, body string, headers ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL()+"/broker/channel/prices/broadcast", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Broker-Channel-Token", "of-the-channel")
	req.Header.Set("X-Broker-Producer-ID", "maker")
	req.Header.Set("X-Broker-Producer-Token", "of-the-producer")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	return resp.Header.Get("Location")
}

// A brokerMessage is the hub's response to GET of a message.
type brokerMessage struct {
	Status string
	Jobs   []struct{ ID, Consumer, Status string }
}

// statuses returns the status of a message, and the status of each job of the
// message by consumer.
func statuses(t *testing.T, n *node.Node, path string) (message string, jobs map[string]string) {
	t.Helper()
	status, body := send(t, n, http.MethodGet, path, "", "", "X-Broker-Channel-Token", "of-the-channel")
	require.Equal(t, http.StatusOK, status, body)
	var m brokerMessage
	require.NoError(t, json.Unmarshal([]byte(body), &m), body)
	jobs = make(map[string]string)
	for _, j := range m.Jobs {
		jobs[j.ID] = j.Status
	}
	return m.Status, jobs
}

func TestABroadcast_ReachesTheConsumersThatExistBefore(t *testing.T) {
	first, second, late := startReceiver(t, nil), startReceiver(t, nil), startReceiver(t, nil)
	n, stop := start(t, brokerSettings(t.TempDir()), node.Options{})
	putChannel(t, n, map[string]string{"first": first.URL, "second": second.URL})
	path := broadcast(t, n, "price;1\n", "Content-Type", "text/csv", "X-Broker-Message-Priority", "7", "X-Broker-Metadata-Headers", "X-Trace", "X-Trace", "17")
	putParty(t, n, http.StatusCreated, "/channel/prices/consumer/late", url.Values{"token": {"of-late"}, "callbackUrl": {late.URL}})
	for name, r := range map[string]*callReceiver{"first": first, "second": second} {
		c := <-r.calls
		require.Equal(t, "price;1\n", string(c.body))
		require.Equal(t, "text/csv", c.header.Get("Content-Type"))
		require.Equal(t, "of-"+name, c.header.Get("X-Broker-Consumer-Token"))
		require.Equal(t, "17", c.header.Get("X-Trace"))
		require.Equal(t, "7", c.header.Get("X-Broker-Message-Priority"))
		require.True(t, strings.HasSuffix(path, "/"+c.header.Get("X-Broker-Message-Id")))
		verifier, err := standardwebhooks.NewWebhook(webhook.TokenVerifyKey(webhook.Key("of-" + name)))
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(c.body, c.header))
	}
	require.Eventually(t, func() bool {
		message, jobs := statuses(t, n, path)
		return message == "Out-for-delivery" && fmt.Sprint(jobs) == "map[first:Delivered second:Delivered]"
	}, 10*time.Second, 5*time.Millisecond)
	second2 := broadcast(t, n, "price;2\n")
	require.NotEqual(t, path, second2)
	for _, r := range []*callReceiver{first, second, late} {
		c := <-r.calls
		require.Equal(t, "price;2\n", string(c.body))
	}
	require.NoError(t, stop())
}

func TestADeadJob_IsRetriggeredByItsConsumer(t *testing.T) {
	r := startReceiver(t, func(*receivedCall) int { return http.StatusFound }) // a redirect counts as a failure
	dir := t.TempDir()
	n, stop := start(t, brokerSettings(dir), node.Options{})
	putChannel(t, n, map[string]string{"shop": r.URL})
	path := broadcast(t, n, "x")
	for attempt := range 3 {
		c := <-r.calls
		require.Equal(t, http.MethodPost, c.method)
		require.Equal(t, fmt.Sprint(attempt), c.header.Get("X-Broker-Message-Attempt"))
	}
	isDead := func() bool {
		_, jobs := statuses(t, n, path)
		return jobs["shop"] == "Dead"
	}
	require.Eventually(t, isDead, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, stop())

	n, stop = start(t, brokerSettings(dir), node.Options{})
	require.True(t, isDead())
	status, body := send(t, n, http.MethodGet, "/broker/channel/prices/consumer/shop/dlq", "", "", "X-Broker-Consumer-Token", "of-shop")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, path[strings.LastIndex(path, "/")+1:])
	status, body = send(t, n, http.MethodPost, path+"/job/shop/re-trigger", "", "", "X-Broker-Consumer-Token", "of-the-channel")
	require.Equal(t, http.StatusForbidden, status, body)
	r.set(nil)
	status, body = send(t, n, http.MethodPost, path+"/job/shop/re-trigger", "", "", "X-Broker-Consumer-Token", "of-shop")
	require.Equal(t, http.StatusAccepted, status, body)
	c := <-r.calls
	require.Equal(t, "0", c.header.Get("X-Broker-Message-Attempt"))
	require.Eventually(t, func() bool {
		_, jobs := statuses(t, n, path)
		return jobs["shop"] == "Delivered"
	}, 10*time.Second, 5*time.Millisecond)
	status, body = send(t, n, http.MethodPost, path+"/job/shop/re-trigger", "", "", "X-Broker-Consumer-Token", "of-shop")
	require.Equal(t, http.StatusConflict, status, body)
	require.NoError(t, stop())
}
