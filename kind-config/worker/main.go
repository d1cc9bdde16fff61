// The program of the pods that scenarios run on real nodes. It takes room and time, and does no work.
//
//	/worker run [--for SECONDS] [--exit CODE] [--ignore-term]
//	/worker finish
//
// `run` is pid 1 of its container. It ends with CODE after SECONDS, or when it is told to finish; without --for it runs
// until then. On SIGTERM it leaves at once with 143, as a program without a handler would; --ignore-term waits for
// SIGKILL. `finish` runs in the same container (kubectl exec) and ends before the container does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	finishSignal = syscall.SIGUSR1
	terminated   = 128 + int(syscall.SIGTERM)
	listening    = "worker-listens" // the name that a process gives itself; at most 15 bytes
	usage        = "usage: /worker run [--for SECONDS] [--exit CODE] [--ignore-term]  or  /worker finish"
)

func main() {
	command, arguments := "run", os.Args[1:]
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		command, arguments = arguments[0], arguments[1:]
	}
	switch command {
	case "run":
		os.Exit(run(arguments))
	case "finish":
		if err := finish(1); err != nil {
			fail(err)
		}
	default:
		fail(fmt.Errorf("%q is no command; %s", command, usage))
	}
}

func run(arguments []string) int {
	// Before anything else: a kernel drops the signals that pid 1 has no handler for.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, finishSignal, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	if err := os.WriteFile("/proc/self/comm", []byte(listening), 0); err != nil {
		fail(err)
	}

	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	seconds := flags.Float64("for", math.Inf(1), "end after this many seconds")
	code := flags.Int("exit", 0, "the exit code to end with")
	ignoreTerm := flags.Bool("ignore-term", false, "do not leave on SIGTERM")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	if flags.NArg() > 0 || *seconds < 0 || *code < 0 || *code > 255 {
		fmt.Fprintln(os.Stderr, "bad arguments: "+strings.Join(arguments, " ")+"; "+usage)
		return 2
	}

	var over <-chan time.Time
	if !math.IsInf(*seconds, 1) {
		over = time.After(time.Duration(*seconds * float64(time.Second)))
	}
	for {
		select {
		case <-over:
			return *code
		case received := <-signals:
			switch {
			case received == syscall.SIGCHLD:
				reap()
			case received == finishSignal:
				waitUntilAlone(time.Second)
				return *code
			case !*ignoreTerm:
				return terminated
			}
		}
	}
}

// reap ends the zombies that a pid 1 inherits.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// waitUntilAlone lets `finish` end first: with pid 1 the kernel kills the rest, and its caller would see 137.
func waitUntilAlone(most time.Duration) {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if processes() <= 1 {
			return
		}
	}
}

func processes() int {
	entries, _ := os.ReadDir("/proc")
	count := 0
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			count++
		}
	}
	return count
}

// finish tells process pid to end, once it listens.
func finish(pid int) error {
	for end := time.Now().Add(5 * time.Second); !listens(pid); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("pid 1 of this container is no running worker")
		}
	}
	return syscall.Kill(pid, finishSignal)
}

// listens tells whether a process is a worker that has come to listen for signals.
func listens(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(name)) == listening
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
