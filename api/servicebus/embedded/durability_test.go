package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

const (
	childFolder = "EMBEDDED_BUS_CHILD"
	children    = 4 // children is the number of goroutines that send and receive in the child process
)

// sendUntilKilled sends numbered messages and completes some of them until the process is killed. It prints every
// confirmed operation.
func sendUntilKilled(dir string) {
	n, err := embedded.Open(embedded.Options{Dir: dir})
	panicOn(err)
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), clientDialing(n.Dial))
	panicOn(err)
	var printing sync.Mutex
	say := func(what string, number int) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Println(what, number)
	}
	first, err := strconv.Atoi(os.Getenv(childFolder + "_FROM"))
	panicOn(err)
	var all sync.WaitGroup
	for worker := range children {
		s, err := c.NewSender("q", nil)
		panicOn(err)
		r, err := c.NewReceiverForQueue("q", nil)
		panicOn(err)
		all.Go(func() {
			for number := first + worker; ; number += children {
				batch, err := s.NewMessageBatch(context.Background(), nil)
				panicOn(err)
				for _, part := range []string{"a", "b"} {
					panicOn(batch.AddMessage(&azservicebus.Message{Body: fmt.Appendf(nil, "%d%s", number, part)}, nil))
				}
				panicOn(s.SendMessageBatch(context.Background(), batch, nil))
				say("sent", number)
				m, err := r.ReceiveMessages(context.Background(), 1, nil)
				panicOn(err)
				body := string(m[0].Body)
				panicOn(r.CompleteMessage(context.Background(), m[0], nil))
				done, err := strconv.Atoi(body[:len(body)-1])
				panicOn(err)
				say("completed-"+body[len(body)-1:], done)
			}
		})
	}
	all.Wait()
}

func panicOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killAfterLines starts a child process, kills it after count lines of output, and returns these lines.
func killAfterLines(t *testing.T, dir string, from, count int) map[string]bool {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+dir, childFolder+"_FROM="+strconv.Itoa(from))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	said := map[string]bool{}
	lines := bufio.NewReader(out)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the last line may be incomplete
		}
		said[strings.TrimSpace(line)] = true
		if n == count {
			require.NoError(t, child.Process.Signal(syscall.SIGKILL))
		}
	}
	require.Error(t, child.Wait(), "the child must have been killed")
	return said
}

func TestKill_LosesAndResurrectsNoMessage(t *testing.T) {
	dir := t.TempDir()
	n, err := embedded.Open(embedded.Options{Dir: dir, Entities: queues("q")})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	said := map[string]bool{}
	const far = 1_000_000
	for round := range 3 {
		for line := range killAfterLines(t, dir, round*far, 100+70*round) {
			said[line] = true
		}
	}

	n = openNamespace(t, embedded.Options{Dir: dir})
	c := newClient(t, n)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	left := map[string]int{}
	for from := int64(0); ; {
		seen, err := r.PeekMessages(t.Context(), 250, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		require.NoError(t, err)
		if len(seen) == 0 {
			break
		}
		for _, m := range seen {
			left[string(m.Body)]++
			require.Greater(t, *m.SequenceNumber, from-1)
			from = *m.SequenceNumber + 1
		}
	}
	sent, completed := 0, 0
	for line := range said {
		what, number, _ := strings.Cut(line, " ")
		if part, ok := strings.CutPrefix(what, "completed-"); ok {
			completed++
			require.LessOrEqual(t, left[number+part], 0, "%s%s was completed, and is back", number, part)
			continue
		}
		sent++
		for _, part := range []string{"a", "b"} {
			if left[number+part] == 0 {
				left[number+part] = -1 // the child may be killed after it completed the message and before it printed it
			}
		}
	}
	missing := 0
	for body, count := range left {
		require.LessOrEqual(t, count, 1, "%s occurs twice", body)
		number, part := body[:len(body)-1], body[len(body)-1:]
		if count < 0 && !said["completed-"+part+" "+number] {
			missing++
		}
	}
	require.NotZero(t, sent)
	require.NotZero(t, completed)
	require.LessOrEqual(t, missing, 3*children, "a message is gone only if a child was about to say that it completed it")
}

func TestAcceptedMessages_SurviveReopening(t *testing.T) {
	dir := t.TempDir()
	n, err := embedded.Open(embedded.Options{Dir: dir, Entities: queues("q")})
	require.NoError(t, err)
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), clientDialing(n.Dial))
	require.NoError(t, err)
	sendBodies(t, c, "q", "a", "b")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	require.NoError(t, r.CompleteMessage(t.Context(), receiveOne(t, r), nil))
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, n.Close())
	require.NoError(t, n.Close(), "closing twice does no harm")
	_, err = n.Dial(t.Context())
	require.ErrorIs(t, err, embedded.ErrClosed)

	c = newClient(t, openNamespace(t, embedded.Options{Dir: dir}))
	r, err = c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	require.Equal(t, "b", string(receiveOne(t, r).Body))
}
