package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// documents are the man pages and the completions by file name, and the
// licences of the linked modules.
type documents struct {
	notices     []byte
	pages       map[string][]byte // pages by file name, such as messagehub-serve.1
	completions map[string][]byte // completions by file name, such as messagehub.bash
}

// completionNames are the names of the files with completions, by shell.
var completionNames = map[string]string{"bash": "messagehub.bash", "zsh": "_messagehub", "fish": "messagehub.fish", "powershell": "messagehub.ps1"}

// readDocuments runs the program for this machine to get its commands and
// completions.
func (r *release) readDocuments(ctx context.Context, binary string) (documents, error) {
	d := documents{completions: make(map[string][]byte)}
	text, err := commandOutput(ctx, binary, "commands")
	if err != nil {
		return d, err
	}
	if d.pages, err = manPages(text, &doc.GenManHeader{Section: "1", Date: &r.date, Source: "MessageHub " + r.version, Manual: "MessageHub"}); err != nil {
		return d, err
	}
	if d.notices, err = r.readNotices(ctx); err != nil {
		return d, err
	}
	for shell, name := range completionNames {
		if d.completions[name], err = commandOutput(ctx, binary, "completion", shell); err != nil {
			return d, err
		}
	}
	return d, nil
}

// readNotices returns the licences of the linked modules, which must be
// distributed with the program.
func (r *release) readNotices(ctx context.Context) ([]byte, error) {
	file := filepath.Join(r.work, "NOTICES")
	cmd := exec.CommandContext(ctx, "go", "run", "./deploy/notices", "-o", file)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go run ./deploy/notices: %w", err)
	}
	return os.ReadFile(file)
}

// writeDocuments writes all documents into the folder of the results: NOTICES, man/man1, man1.gz and completions.
func (r *release) writeDocuments(ctx context.Context) error {
	binary, err := r.buildBinary(ctx, hostTarget())
	if err != nil {
		return err
	}
	docs, err := r.readDocuments(ctx, binary)
	if err != nil {
		return err
	}
	files := map[string][]byte{"NOTICES": docs.notices}
	for name, page := range docs.pages {
		files[filepath.Join("man/man1", name)] = page
		if files[filepath.Join("man1.gz", name+".gz")], err = gzipText(page); err != nil {
			return err
		}
	}
	for name, text := range docs.completions {
		files[filepath.Join("completions", name)] = text
	}
	return writeFiles(r.out, files)
}

// writeFiles writes files to a folder.
func writeFiles(folder string, files map[string][]byte) error {
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func commandOutput(ctx context.Context, binary string, args ...string) ([]byte, error) {
	text, err := exec.CommandContext(ctx, binary, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", binary, strings.Join(args, " "), err)
	}
	return text, nil
}

// A command is a command in the output of messagehub commands.
type command struct {
	Use, Short, Long, Example string
	Flags                     []struct{ Name, Shorthand, Type, Usage, Default, NoValue string }
	Commands                  []command
}

// manPages returns the pages of a command and of all commands below it.
func manPages(text []byte, header *doc.GenManHeader) (map[string][]byte, error) {
	var described command
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, fmt.Errorf("messagehub commands: %w", err)
	}
	root, err := described.toCobra()
	if err != nil {
		return nil, err
	}
	pages := make(map[string][]byte)
	var write func(cmd *cobra.Command) error
	write = func(cmd *cobra.Command) error {
		h := *header // a copy, because GenMan changes it
		var page bytes.Buffer
		if err := doc.GenMan(cmd, &h, &page); err != nil {
			return err
		}
		pages[strings.ReplaceAll(cmd.CommandPath(), " ", "-")+"."+header.Section] = page.Bytes()
		for _, below := range cmd.Commands() {
			if below.Hidden {
				continue
			}
			if err := write(below); err != nil {
				return err
			}
		}
		return nil
	}
	return pages, write(root)
}

// toCobra returns a cobra command with the same texts and flags.
func (c *command) toCobra() (*cobra.Command, error) {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, DisableAutoGenTag: true, Run: func(*cobra.Command, []string) {}}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true})
	for _, f := range c.Flags {
		flag := &pflag.Flag{Name: f.Name, Shorthand: f.Shorthand, Usage: f.Usage, DefValue: f.Default, NoOptDefVal: f.NoValue, Value: shownValue{f.Type, f.Default}}
		if cmd.Flags().Lookup(f.Name) != nil {
			return nil, fmt.Errorf("%s has two flags %s", c.Use, strconv.Quote(f.Name))
		}
		cmd.Flags().AddFlag(flag)
	}
	for i := range c.Commands {
		below, err := c.Commands[i].toCobra()
		if err != nil {
			return nil, err
		}
		cmd.AddCommand(below)
	}
	return cmd, nil
}

// A shownValue is a value of a flag that only has a text.
type shownValue struct{ kind, text string }

func (v shownValue) String() string   { return v.text }
func (v shownValue) Set(string) error { return nil }
func (v shownValue) Type() string     { return v.kind }
