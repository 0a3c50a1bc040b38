package servicebus_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
)

func BenchmarkNotice(b *testing.B) {
	n := bustest.Open(b, embedded.Options{Dir: b.TempDir()})
	open := bustest.ServeTCP(b, n)
	s := newNotices(b, n, func(o *servicebus.NoticeOptions) { o.Open = open })
	require.NoError(b, s.Notify(b.Context(), aNotice(0)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Notify(b.Context(), aNotice(1)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "notices/s")
}
