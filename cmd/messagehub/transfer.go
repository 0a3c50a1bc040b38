package main

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A transfer prints the progress of a backup or a restore. On a terminal it
// updates one line; otherwise it prints a line every ten seconds.
type transfer struct {
	line    terminal.StatusLine
	done    string
	printed time.Time
}

func (p *process) newTransfer(done string) *transfer {
	return &transfer{line: terminal.NewStatusLine(p.err), done: done, printed: time.Now()}
}

func (t *transfer) reportProgress(now backup.Progress) {
	every := 10 * time.Second
	if t.line.Watched {
		every = 200 * time.Millisecond
	}
	if time.Since(t.printed) < every {
		return
	}
	t.printed = time.Now()
	text := fmt.Sprintf("%s %s, %s", t.done, terminal.CountOf(now.Files, "file"), sizeText(now.Bytes))
	if t.line.Watched {
		t.line.Draw(text)
	} else {
		fmt.Fprintln(t.line.Writer, text)
	}
}

func (t *transfer) clearLine() { t.line.Clear() }
