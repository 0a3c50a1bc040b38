package node_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// Ten clients read the metrics in both formats. Meanwhile requests arrive that
// contain new values wherever a client can choose a value. These values must
// not become labels.
func TestMetrics_AreScrapedByTenAtOnce(t *testing.T) {
	const scrapers, scrapes, marker = 10, 10, "zzmarker"
	n, _ := start(t, settings(""), node.Options{})
	scrape := func(accept string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/metrics", http.NoBody)
		if err != nil {
			t.Error(err)
			return ""
		}
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("a scrape: status %d, %v", resp.StatusCode, err)
		}
		return string(text)
	}
	send := func(i int) {
		value := fmt.Sprintf("%s%d", marker, i)
		event := fmt.Sprintf(`[{"id":"00000000-0000-4000-8000-%012d","recipient":%q,"origin":"Charges","contentType":%q,`+
			`"documentType":%q,"supportsBundling":true,"weight":1}]`, i, value, value, value)
		for _, r := range [][3]string{
			{http.MethodPost, "/v1/data-available", event},
			{http.MethodPost, "/v1/data-available", strings.Replace(event, "Charges", value, 1)},
			{http.MethodGet, "/v1/peek?" + value + "=" + value, ""},
			{http.MethodGet, "/v1/peek", ""},
			{http.MethodGet, "/v1/peek/" + value, ""},
			{http.MethodDelete, "/v1/dequeue/" + value, ""},
			{http.MethodGet, "/v1/admin/queues/" + value, ""},
			{http.MethodGet, "/v1/admin/dead-letters?queue=" + value, ""},
			{http.MethodGet, "/v1/resources/" + value, ""},
			{http.MethodGet, "/" + value, ""},
			{strings.ToUpper(value), "/v1/peek", ""},
		} {
			req, err := http.NewRequestWithContext(t.Context(), r[0], n.URL()+r[1], strings.NewReader(r[2]))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Actor-Id", value)
			req.Header.Set("X-Request-Id", value)
			req.Header.Set("User-Agent", value)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+adminToken)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	send(0) // creates the time series for each route and status
	before, err := testutil.GatherAndCount(n.Gatherer())
	require.NoError(t, err)

	var all sync.WaitGroup
	for i := range scrapers {
		accept := []string{"text/plain", "application/openmetrics-text;version=1.0.0"}[i%2]
		all.Go(func() {
			for range scrapes {
				scrape(accept)
			}
		})
	}
	all.Go(func() {
		for i := range 2 * seriesOfOwnWork {
			send(i + 1)
		}
	})
	all.Wait()
	text := scrape("text/plain")
	require.Contains(t, text, `messagehub_http_request_duration_seconds_count{route="/v1/peek",status="200"}`)
	require.NotContains(t, strings.ToLower(text), marker)
	after, err := testutil.GatherAndCount(n.Gatherer())
	require.NoError(t, err)
	require.LessOrEqual(t, after, before+seriesOfOwnWork, "series that the requests have made")
}

// seriesOfOwnWork is the maximum number of time series that the node's
// background work, such as the survey, may add.
const seriesOfOwnWork = 50

func TestMetrics_HaveTheCountersOfDomainsFromTheStart(t *testing.T) {
	n, _ := start(t, withListeners(""), node.Options{})
	resp, text := get(t, n.URL()+"/metrics")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	for _, series := range []string{
		`messagehub_servicebus_requests_total{origin="Charges",outcome="content"}`,
		`messagehub_servicebus_requests_total{origin="Charges",outcome="no-answer"}`,
		`messagehub_servicebus_replies_refused_total{origin="Charges",reason="malformed-reply"}`,
		`messagehub_servicebus_notices_total{origin="Charges",outcome="unavailable"}`,
		`messagehub_http_stalled_clients_total{memory="answers"}`,
		`messagehub_http_stalled_clients_total{memory="requests"}`,
		`messagehub_repairs_total{what="rollback"}`,
		`messagehub_repairs_total{what="entry-stale"}`,
		`messagehub_swept_total{what="drawer"}`,
	} {
		require.Contains(t, text, series+" 0\n")
	}
	_, _ = get(t, n.URL()+"/v1/peek")
	_, text = get(t, n.URL()+"/metrics")
	require.Contains(t, text, `messagehub_cosmos_retries_total{operation="peek"} 0`+"\n")
}
