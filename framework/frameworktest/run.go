package frameworktest

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework"
)

// Run plays the script twice over what wrap makes: with tools' results as they come, and replaced. What
// wrappers do not do yet is known here, see [conversationtest.Today].
func Run(t *testing.T, name string, wrap func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) Ask) {
	t.Helper()
	for _, replace := range []bool{false, true} {
		t.Run(fmt.Sprint("replace=", replace), func(t *testing.T) {
			conversationtest.Run(t, New(name, func(pilot *contextpilot.Pilot, scope contextpilot.Scope) Ask {
				return wrap(pilot, scope, replace)
			}), today[replace])
		})
	}
}

// today is what the script wants and wrappers do not do yet, by whether tools' results are replaced.
var today = map[bool]conversationtest.Today{
	false: { // as it comes: tools' results are only fenced
		"#5 M": "full", "#8 rows of F": "as it came", "#9 F": "as it came", "#10 G": "full", "#10 M": "full", "#10 S": "full",
		"#13 J": "full", "#1 and #2 cut: #5 M": "full",
	},
	true: {
		"invariant 8: idempotent": "does not hold", // notes that come back are fenced
	},
}

// Pilot returns a pilot without settings.
func Pilot(t testing.TB) *contextpilot.Pilot {
	t.Helper()
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return pilot
}

// RunUnclaimed checks a wrapper of retrievers whose plans no model claims, though the pilot has one: those that are held count as
// not sent after ten minutes, others are no concern of the model's, and stay. wrap returns a function that makes a plan, and that keeps
// the wrappers of the retriever and of the model: what nothing keeps is forgotten.
func RunUnclaimed(t *testing.T, wrap func(t *testing.T, pilot *contextpilot.Pilot, hold bool) (plan func())) {
	t.Helper()
	for hold, left := range map[bool]int64{true: 0, false: 2} {
		t.Run(fmt.Sprint("hold=", hold), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pilot := Pilot(t)
				plan := wrap(t, pilot, hold)
				plan()
				plan()
				time.Sleep(10 * time.Minute)
				held := framework.OffersOf(pilot).Stats().Held
				if st := pilot.Stats(); st.Plans != left || st.LiveRequests != left || held != 0 {
					t.Errorf("%d plans and %d live, %d held, want %d, %d and 0", st.Plans, st.LiveRequests, held, left, left)
				}
				runtime.KeepAlive(plan)
			})
		})
	}
}

// RoleOf returns the role for which a framework has a name.
func RoleOf[R comparable](names map[conversationtest.Role]R, name R) (role conversationtest.Role) {
	for r, known := range names {
		if known == name {
			role = r
		}
	}
	return role
}
