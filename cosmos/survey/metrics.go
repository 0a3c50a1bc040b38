package survey

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/domain"
)

// A collector exports the totals of the lines while this node surveys. Other nodes export no totals, so
// a sum over all nodes is correct.
type collector struct{ survey *Survey }

var (
	waitingEvents = prometheus.NewDesc("messagehub_waiting_events",
		"Events that wait in all mailboxes, those of open bundles included, by group. Only the node that surveys exports it.", []string{"group"}, nil)
	oldestAge = prometheus.NewDesc("messagehub_oldest_event_age_seconds",
		"Age of the event that waits longest in any mailbox, by group; 0: none waits. Only the node that surveys exports it.", []string{"group"}, nil)
	openAge = prometheus.NewDesc("messagehub_open_bundle_age_seconds",
		"Age of the bundle that is open longest in any mailbox, by group; 0: none is open. Only the node that surveys exports it.", []string{"group"}, nil)
	mailboxes = prometheus.NewDesc("messagehub_mailboxes",
		"Mailboxes by state: empty, waiting, open, failing, frozen, damaged. Only the node that surveys exports it.", []string{"state"}, nil)
	surveyAge = prometheus.NewDesc("messagehub_survey_age_seconds",
		"Age of the survey of mailboxes: changes that are older are in it. Only the node that surveys exports it.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waitingEvents, oldestAge, openAge, mailboxes, surveyAge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.survey
	at := s.table.At()
	if !s.owning.Load() || at.IsZero() {
		return
	}
	now := s.opts.Clock()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, max(value, 0), labels...)
	}
	gauge(surveyAge, now.Sub(at).Seconds())
	sums := s.table.totalSums()
	for _, state := range domain.MailboxStates {
		gauge(mailboxes, float64(sums.States[state]), string(state))
	}
	for _, group := range s.reader.Groups() {
		g := sums.Groups[group]
		gauge(waitingEvents, float64(g.Waiting.Events), group.String())
		oldest, open := 0., 0.
		if !g.Waiting.Oldest.IsZero() {
			oldest = now.Sub(g.Waiting.Oldest).Seconds()
		}
		if !g.OldestOpen.IsZero() {
			open = now.Sub(g.OldestOpen).Seconds()
		}
		gauge(oldestAge, oldest, group.String())
		gauge(openAge, open, group.String())
	}
}
