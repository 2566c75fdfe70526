// Command porcupine judges histories of registers with Porcupine, so that kvdyno's own checker can
// be held against it. It reads histories in Jepsen's EDN, as kvdyno writes them, with a line "---"
// after each, and prints a line for each: "ok", "violated" or "unknown".
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience bounds the search for one history; past it the answer is "unknown".
const patience = 60 * time.Second

var line = regexp.MustCompile(`^\{:index \d+, :type :(\w+), :process (\d+), :time \d+, ` +
	`:f :(\w+), :value \[(\d+) (nil|-?\d+)\]\}$`)

// request is what an operation asked: of which record, and what to write if it is a write.
type request struct {
	write  bool
	record string
	value  string
}

// register is a register for each record, "nil" at first; an empty answer is that of a read which
// never came to an end.
var register = porcupine.Model{
	Init: func() interface{} { return "nil" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		asked, found := input.(request), output.(string)
		if asked.write {
			return true, asked.value
		}
		return found == "" || found == state.(string), state
	},
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		records := map[string][]porcupine.Operation{}
		for _, operation := range history {
			record := operation.Input.(request).record
			records[record] = append(records[record], operation)
		}
		var parts [][]porcupine.Operation
		for _, part := range records {
			parts = append(parts, part)
		}
		return parts
	},
}

// history collects operations from their lines; the number of a line is its time, as the file is in
// the order of time and, of things at one time, invocations come first: they overlap.
type history struct {
	operations []porcupine.Operation
	open       map[string]int
	failed     map[int]bool
	lines      int64
}

func (h *history) add(text string) error {
	parts := line.FindStringSubmatch(text)
	if parts == nil {
		return fmt.Errorf("not a line of a history: %q", text)
	}
	kind, process, function, record, value := parts[1], parts[2], parts[3], parts[4], parts[5]
	h.lines++
	if kind == "invoke" {
		client, _ := strconv.Atoi(process)
		h.open[process] = len(h.operations)
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: client,
			Input:    request{write: function == "write", record: record, value: value},
			Call:     h.lines,
			Output:   "",
			Return:   1 << 62,
		})
		return nil
	}
	at, known := h.open[process]
	if !known {
		return fmt.Errorf("never invoked: %q", text)
	}
	delete(h.open, process)
	switch kind {
	case "ok":
		h.operations[at].Output = value
		h.operations[at].Return = h.lines
	case "fail":
		h.failed[at] = true
	}
	return nil
}

func (h *history) judge() string {
	var judged []porcupine.Operation
	for at, operation := range h.operations {
		if !h.failed[at] {
			judged = append(judged, operation)
		}
	}
	switch porcupine.CheckOperationsTimeout(register, judged, patience) {
	case porcupine.Ok:
		return "ok"
	case porcupine.Illegal:
		return "violated"
	default:
		return "unknown"
	}
}

func fresh() *history {
	return &history{open: map[string]int{}, failed: map[int]bool{}}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	current := fresh()
	for lines.Scan() {
		if lines.Text() == "---" {
			fmt.Println(current.judge())
			current = fresh()
		} else if err := current.add(lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
