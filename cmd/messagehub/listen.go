package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/receiver"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A listenCommand contains the flags of messagehub listen.
type listenCommand struct {
	host     string
	port     int
	insecure bool
	keys     verifyFlags
	token    tokenFlag
	receiver receiver.Options
}

func (p *process) listenCommand() *cobra.Command {
	l := listenCommand{token: tokenFlag{name: "consumer-token", whose: "consumer of the broker"}}
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive the calls of a hub, verify and print them",
		Long: "Receive the calls of a hub until Ctrl-C, verify and print them. It answers 200, or the status in --answer.\n" +
			"A call that cannot be verified with the given secrets is refused with 401, and the reason is printed.\n" +
			"Without a secret, every call is accepted.\n\n" +
			"A hub calls a receiver on the same machine only with push.allow=127.0.0.0/8 and push.insecure-http=true.\n\n" + verifyHelp,
		Example: "  messagehub listen --port 9000 --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n" +
			"  messagehub listen --consumer-token-file billing.token\n" +
			"  messagehub listen --answer 503 --failures 2 --retry-after 30s\n" +
			"  messagehub listen --delay 20s --json",
		Args: cobra.NoArgs,
	}
	l.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if err := l.checkFlags(p); err != nil {
			return p.usage("%w", err)
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return l.run(ctx, p)
	})
	return cmd
}

func (l *listenCommand) addFlags(f *pflag.FlagSet) {
	f.StringVar(&l.host, "host", "127.0.0.1", "listen on this `ADDRESS`")
	f.IntVar(&l.port, "port", 9000, "listen on port `N`; 0: any free port")
	f.BoolVar(&l.insecure, "insecure", false, "accept calls of other machines without a secret")
	l.keys.addFlags(f)
	l.token.addFlags(f, "with which calls are signed")
	f.IntVar(&l.receiver.Status, "answer", http.StatusOK, "answer accepted calls with this `STATUS`")
	f.IntVar(&l.receiver.Failures, "failures", 0, "use --answer only for the first `N` calls of each message; 0: for all")
	f.DurationVar(&l.receiver.RetryAfter, "retry-after", 0, "send Retry-After with this `TIME`, unless the answer is 2xx")
	f.DurationVar(&l.receiver.Delay, "delay", 0, "wait for this `TIME` before each answer")
	f.IntVar(&l.receiver.ShowBody, "body", 1000, "print up to `N` bytes of each body; 0: none")
	f.BoolVar(&l.receiver.Headers, "headers", false, "print every header, except for credentials")
	f.BoolVar(&l.receiver.JSON, "json", false, "print one JSON object per line")
}

func (l *listenCommand) checkFlags(p *process) error {
	o := &l.receiver
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{l.port < 0 || l.port > 65535, fmt.Sprintf("--port: want a number from 0 to 65535, got %d", l.port)},
		{o.Status < 200 || o.Status > 599, fmt.Sprintf("--answer: want a status from 200 to 599, got %d", o.Status)},
		{o.Failures < 0, "--failures: want a number of calls, or 0"},
		{o.RetryAfter < 0, "--retry-after: want a time such as 30s"},
		{o.Failures > 0 && o.Status < 300, "--failures: these calls would get a success; add --answer with a status such as 503"},
		{o.RetryAfter > 0 && o.Status < 300, "--retry-after: a success has no Retry-After; add --answer with a status such as 503"},
		{o.Delay < 0 || o.Delay > time.Hour, "--delay: want a time such as 20s, up to 1h"},
		{o.ShowBody < 0, "--body: want a number of bytes, or 0"},
	} {
		if wrong.is {
			return errors.New(wrong.what)
		}
	}
	if o.ShowBody == 0 {
		o.ShowBody = -1
	}
	var err error
	if o.Verifier, err = l.keys.newVerifier(p); err != nil {
		return err
	}
	token, err := l.token.readToken()
	if err != nil {
		return err
	}
	if token != "" {
		key, err := webhook.ParseVerifyKey(webhook.TokenVerifyKey(webhook.Key(token)))
		if err != nil {
			return fmt.Errorf("--consumer-token: %w", err)
		}
		o.Verifier.Keys = append(o.Verifier.Keys, key)
		o.Hidden = append(o.Hidden, token)
	}
	if !o.Verifier.HasKeys() && !l.insecure {
		err := config.RequireLoopback(l.listenAddress(), "every machine that reaches it could print here", "give a --secret or a --consumer-token, or --insecure")
		if err != nil {
			return fmt.Errorf("--host %s: %w", l.host, err)
		}
	}
	o.Out = p.out
	o.Logger = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelError}))
	return nil
}

func (l *listenCommand) listenAddress() string {
	return net.JoinHostPort(l.host, strconv.Itoa(l.port))
}

func (l *listenCommand) run(ctx context.Context, p *process) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.listenAddress())
	if errors.Is(err, syscall.EADDRINUSE) {
		return config.PortInUse(l.listenAddress(), "--port")
	}
	if err != nil {
		return fmt.Errorf("--host %s: %w", l.host, err)
	}
	fmt.Fprintf(p.err, "listening on http://%s/, %s; Ctrl-C ends it\n", listener.Addr(), describeKeys(&l.receiver.Verifier))
	r := receiver.New(l.receiver)
	err = r.Serve(ctx, listener)
	fmt.Fprintln(p.err, r.Counts())
	return err
}

// describeKeys says which kinds of keys verify calls, and how many of each.
func describeKeys(v *webhook.Verifier) string {
	var with []string
	if n := len(v.Keys); n > 0 {
		with = append(with, terminal.CountOf(int64(n), "secret"))
	}
	if n := len(v.HMACKeys); n > 0 {
		with = append(with, terminal.CountOf(int64(n), "HMAC key"))
	}
	if len(with) == 0 {
		return "calls are not verified"
	}
	return "calls are verified with " + strings.Join(with, " and ")
}
