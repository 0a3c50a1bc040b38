package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestExchange(t *testing.T) {
	repositorytest.RunExchange(t, func(*testing.T) repositorytest.Shared {
		e := memory.NewExchange()
		return repositorytest.Shared{Exchange: e, Upload: func(_ testing.TB, name string, data []byte) string {
			return e.Upload(name, data)
		}}
	})
}
