"""What to run, and what a budget can see: from public facts, before any data is read."""

from jaxcd.advice.planning import Plan, plan, plan_release
from jaxcd.advice.recommendation import Recommendation
from jaxcd.advice.recommending import recommend

__all__ = ["Plan", "Recommendation", "plan", "plan_release", "recommend"]
