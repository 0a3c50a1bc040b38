package node

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/survey"
)

// embeddedSurvey is the time between two rounds of the survey on the embedded
// engine. It is short, because there a round without changes costs almost
// nothing.
const embeddedSurvey = 2 * time.Second

// openSurvey returns the survey of mailboxes. The caller must run it.
func openSurvey(cfg *config.Config, opts *Options, s *nodeStore, metrics prometheus.Registerer) *survey.Survey {
	every := opts.SurveyEvery
	if cfg.Embedded() {
		every = cmp.Or(every, embeddedSurvey)
	}
	return survey.New(s.db, s.SurveyReader(), survey.Options{
		Exclusive: cfg.Embedded(),
		Units:     float64(cfg.Survey.Units),
		Every:     every,
		Clock:     opts.Clock,
		Random:    opts.Random,
		Logger:    opts.Logger,
		Registry:  metrics,
	})
}

// runSurvey runs the survey until ctx ends, if the configuration turns it on.
func (n *Node) runSurvey(ctx context.Context) {
	if n.isSurveyOn {
		n.survey.Run(ctx)
	}
}
