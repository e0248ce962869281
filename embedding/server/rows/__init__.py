"""Rows on their device: tables, optimiser steps, slots, versions, consistent copies."""
