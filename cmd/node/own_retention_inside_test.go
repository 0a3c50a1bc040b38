package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

func TestOwnRetentions_AreAtMostTheRetentionOfEvents(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct{ hub, objects, want time.Duration }{
		{7 * day, 0, 7 * day},
		{7 * day, 90 * day, 7 * day},
		{7 * day, day, day},
		{0, 90 * day, 90 * day},
		{0, 0, 0},
	} {
		cfg := &config.Config{Retention: tc.hub, Objects: config.Objects{Retention: tc.objects}}
		for _, bucket := range []string{contentBucket(cfg), exchangeBucket(cfg)} {
			require.Equal(t, domain.ObjectRetention(tc.want), ownRetentions(cfg)[bucket], "%+v of %s", tc, bucket)
		}
	}
}
