package console_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
)

func TestOverview_ShowsRatesAndATableOfTheLastHour(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "messagehub_events_accepted_total"}, []string{"source"})
	oldest := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "messagehub_oldest_event_age_seconds"}, []string{"group"})
	registry.MustRegister(counter, oldest)
	b := open(t, func(o *console.Options, _ *api.Options) { o.Gatherer = registry })
	require.Eventually(t, func() bool { return b.console.SampleCount() > 0 }, time.Minute, time.Millisecond, "the first sample of Run")
	for i := range 200 {
		counter.WithLabelValues("http").Add(30)
		counter.WithLabelValues("bus").Add(10)
		oldest.WithLabelValues("timeseries").Set(float64(i))
		oldest.WithLabelValues("masterdata").Set(1)
		b.clock.advance(20 * time.Second)
		b.console.TakeSample()
	}
	b.signIn()
	a := b.get("/console/").wants(http.StatusOK)
	require.Contains(t, a.text(), "Accepted events a second 2")
	require.Contains(t, a.text(), "Age of the oldest event in seconds 199")
	require.Contains(t, a.text(), "Dequeued events a second –")
	rows := 0
	for _, table := range a.elements("table") {
		if attribute(table, "id") == "last-hour" {
			rows = len(elementsOf(table, "tr"))
		}
	}
	require.Equal(t, 181, rows, "those of an hour, and the heading")
	require.Less(t, len(a.body), 150<<10)
	counter.Reset() // simulates a process restart, after which counters begin at 0
	b.clock.advance(20 * time.Second)
	b.console.TakeSample()
	require.Contains(t, b.get("/console/part/rates").wants(http.StatusOK).body, "–")
}

func TestOverview_ListsNodes(t *testing.T) {
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) {
		o.Nodes = func(context.Context) ([]console.Node, int, error) {
			return []console.Node{{ID: "a", Host: "host-a", Version: "v1", Level: 2, IsThis: true}, {ID: "b", Host: "<b>", Version: "v2", Level: 3}}, 2, nil
		}
	})
	text := b.get("/console/").wants(http.StatusOK).text()
	require.Contains(t, text, "whose level is 2")
	require.Contains(t, text, "a this page is from it host-a v1 2")
	require.Contains(t, text, "b <b> v2 3")
}

func TestSample_IsOnlyForHubsWithoutOtherData(t *testing.T) {
	b := openSignedIn(t)
	require.Contains(t, b.get("/console/").text(), "Send sample traffic")
	page := b.get("/console/sample").wants(http.StatusOK)
	require.Contains(t, page.text(), "Nothing was ever sent to the actor.")
	require.Equal(t, "/console/sample", b.post("/console/sample", page.form("/console/sample")).wants(http.StatusSeeOther).header.Get("Location"))
	require.Contains(t, b.get("/console/sample").text(), "TimeSeries measured-data 5 5")
	families, err := b.options.Gatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "messagehub_events_accepted_total" {
			for _, m := range family.GetMetric() {
				require.Equal(t, map[string]float64{"console": 5, "http": 0, "bus": 0}[m.GetLabel()[0].GetValue()], m.GetCounter().GetValue())
			}
		}
	}

	b = openSignedIn(t, func(o *console.Options, _ *api.Options) { o.SendSample = nil })
	require.NotContains(t, b.get("/console/").text(), "Send sample traffic")
	b.get("/console/sample").wants(http.StatusNotFound)
	b.post("/console/sample", b.get("/console/sign-out").form("/console/sign-out")).wants(http.StatusNotFound)
}

func TestConfiguration_ShowsOriginsAndNoDefaultsUnlessAsked(t *testing.T) {
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) {
		o.Settings = []console.Setting{
			{Name: "listen", Value: "127.0.0.1:1", Origin: "flag", From: "--listen", Usage: "where it listens"},
			{Name: "admin.token", Value: "[redacted]", Origin: "environment", From: "MESSAGEHUB_ADMIN_TOKEN"},
			{Name: "retention", Value: "7d", Origin: "default", From: "the default", IsDefault: true},
		}
	})
	text := b.get("/console/configuration").wants(http.StatusOK).text()
	require.Contains(t, text, "listen 127.0.0.1:1 flag --listen where it listens")
	require.Contains(t, text, "[redacted]")
	require.NotContains(t, text, "retention 7d")
	require.Contains(t, b.get("/console/configuration?all=1").text(), "retention 7d")
}

func TestNumbersAndDurations_AreFormatted(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", -1234567: "-1\u202f234\u202f567"} {
		require.Equal(t, want, console.GroupDigits(n))
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s", time.Hour: "1 h", 50*time.Hour + time.Minute: "2 d 2 h",
	} {
		require.Equal(t, want, console.Duration(d))
	}
}
