// Says of each history on its input, a line of JSON each, whether it is linearizable: a list of transactions on lists of
// numbers, each with its call, its return and its operations. It is written for the test beside it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/anishathalye/porcupine"
)

type op struct {
	Key    int
	Append *uint32
	Read   []uint32
}

type transaction struct {
	Call, Return int64
	// Whether what it read is known.
	Known bool
	Ops   []op
}

type state map[int][]uint32

func (s state) copy() state {
	c := make(state, len(s))
	for key, list := range s {
		c[key] = slices.Clone(list)
	}
	return c
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		after := before.(state).copy()
		for _, op := range input.(transaction).Ops {
			if op.Append != nil {
				after[op.Key] = append(after[op.Key], *op.Append)
			} else if input.(transaction).Known && !slices.Equal(after[op.Key], op.Read) {
				return false, before
			}
		}
		return true, after
	},
	Equal: func(one, other any) bool {
		a, b := one.(state), other.(state)
		if len(a) != len(b) {
			return false
		}
		for key, list := range a {
			if !slices.Equal(list, b[key]) {
				return false
			}
		}
		return true
	},
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var history []transaction
		if err := json.Unmarshal(lines.Bytes(), &history); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		operations := make([]porcupine.Operation, len(history))
		for n, one := range history {
			operations[n] = porcupine.Operation{Input: one, Call: one.Call, Return: one.Return}
		}
		fmt.Println(porcupine.CheckOperations(model, operations))
	}
}
